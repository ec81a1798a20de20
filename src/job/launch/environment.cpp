#include "job/launch/environment.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <sstream>

namespace syncopate {
namespace {

/// The words of the first line of features, which x86 calls `flags`.
std::vector<std::string> cpu_features(std::string_view cpuinfo) {
  std::istringstream lines{std::string(cpuinfo)};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("flags")) {
      std::istringstream words(line);
      return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
    }
  }
  return {};
}

bool has_all(const std::vector<std::string>& features, std::initializer_list<const char*> wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const char* feature) {
    return std::find(features.begin(), features.end(), feature) != features.end();
  });
}

}  // namespace

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<Variable> wanted_environment(std::string_view cpuinfo, std::uint32_t threads) {
  const auto features = cpu_features(cpuinfo);
  const auto count = std::to_string(threads);
  std::vector<Variable> variables{{"OMP_NUM_THREADS", count}, {"OPENBLAS_NUM_THREADS", count}};
  if (has_all(features, {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"})) {
    variables.push_back({"OPENBLAS_CORETYPE", "SKYLAKEX"});
  } else if (has_all(features, {"avx2", "fma"})) {
    variables.push_back({"OPENBLAS_CORETYPE", "HASWELL"});
  }
  return variables;
}

void set_environment(const std::vector<Variable>& variables,
                     const std::function<void(const std::string&)>& report) {
  for (const auto& [name, value] : variables) {
    if (const char* present = std::getenv(name.c_str())) {
      report(fmt::format("{}={} kept from the environment", name, present));
      continue;
    }
    ::setenv(name.c_str(), value.c_str(), 1);
    report(fmt::format("{}={} set", name, value));
  }
}

bool sets_malloc(const Environment& environment) {
  constexpr std::array settings = {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_",
                                   "MALLOC_MMAP_MAX_", "MALLOC_TOP_PAD_"};
  return environment("GLIBC_TUNABLES").find("glibc.malloc.") != std::string::npos ||
         std::ranges::any_of(settings,
                             [&](const char* name) { return !environment(name).empty(); });
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::uint32_t process_id() {
  return static_cast<std::uint32_t>(::getpid());
}

double cpu_seconds() {
  std::timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double wall_seconds() {
  return static_cast<double>(std::time(nullptr));
}

std::string time_for_a_name() {
  return fmt::format("{:%Y%m%d-%H%M%S}", fmt::localtime(std::time(nullptr)));
}

}  // namespace syncopate
