#include "job/launch/torch_program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "job/launch/environment.hpp"

namespace syncopate {
namespace {

std::filesystem::path program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

std::filesystem::path torch_program() {
  const auto folder = program_folder();
  const auto beside = folder / "syncopate-torch";
  const auto installed = folder.parent_path() / "libexec/syncopate/syncopate-torch";
  for (const auto& path : {beside, installed}) {
    if (::access(path.c_str(), X_OK) == 0) {
      return path;
    }
  }
  throw Error(fmt::format(
      "this command needs the program syncopate-torch, which is neither {} nor {}; build Syncopate "
      "with SYNCOPATE_TORCH=ON",
      beside.string(), installed.string()));
}

}  // namespace

void become_torch_program(char** argv, std::uint32_t threads, log::Verbosity verbosity) {
  const auto program = torch_program();
  log::set_up("", verbosity);
  set_environment(wanted_environment(read_file("/proc/cpuinfo"), threads),
                  [](const std::string& line) { log::debug("{}", line); });
  ::execv(program.c_str(), argv);
  throw Error(fmt::format("cannot start {}: {}", program.string(), std::strerror(errno)));
}

std::filesystem::path installed_clusters() {
  return program_folder().parent_path() / "share/syncopate/clusters";
}

}  // namespace syncopate
