#include "base/frame_names.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/printable.hpp"

namespace syncopate {
namespace {

/// A signature of templates may take pages.
constexpr std::size_t longest_name = 160;

std::string readable(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), &std::free);
  return excerpt(demangled ? demangled.get() : symbol, longest_name);
}

std::string describe(const char* address) {
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) {
    return fmt::format("{}", fmt::ptr(address));
  }
  const std::string place =
      fmt::format("({}+{:#x})", std::filesystem::path(info.dli_fname).filename().string(),
                  address - static_cast<const char*>(info.dli_fbase));
  return info.dli_sname == nullptr ? place : fmt::format("{} {}", readable(info.dli_sname), place);
}

}  // namespace

const std::string& FrameNames::of(void* address, bool call) {
  const auto [entry, is_new] = known_.try_emplace({address, call});
  if (is_new) {
    entry->second = describe(static_cast<const char*>(address) - (call ? 1 : 0));
  }
  return entry->second;
}

}  // namespace syncopate
