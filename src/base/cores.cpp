#include "base/cores.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

namespace syncopate {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_cores = 8192;  // of the largest Linux kernels

/// A set of cores.
class CoreSet {
 public:
  /// Adds the affinity of a process. Has no effect if there is no such process.
  void add_affinity_of(pid_t process) {
    CoreSet other;
    if (::sched_getaffinity(process, sizeof(other.sets_), other.sets_.data()) == 0) {
      CPU_OR_S(sizeof(sets_), sets_.data(), sets_.data(), other.sets_.data());
    }
  }

  std::uint32_t count() const {
    return static_cast<std::uint32_t>(CPU_COUNT_S(sizeof(sets_), sets_.data()));
  }

 private:
  std::array<cpu_set_t, most_cores / CPU_SETSIZE> sets_{};
};

/// The first numbers of a file; a word that is no number, such as "max", ends them.
std::array<std::optional<double>, 2> numbers_in(const fs::path& path) {
  std::array<std::optional<double>, 2> numbers;
  std::ifstream file(path);
  for (std::optional<double>& number : numbers) {
    double value = 0;
    if (!(file >> value)) {
      break;
    }
    number = value;
  }
  return numbers;
}

/// The limit of a single cgroup, whose folder this is.
std::optional<double> limit_in(const fs::path& folder) {
  auto [time, period] = numbers_in(folder / "cpu.max");
  if (!time) {
    time = numbers_in(folder / "cpu.cfs_quota_us")[0];  // of version 1; -1: no limit
    period = numbers_in(folder / "cpu.cfs_period_us")[0];
  }
  return time && period && *time > 0 && *period > 0 ? std::optional(*time / *period) : std::nullopt;
}

/// The least limit of the cgroup `path` and those above it. Inside of a container the folder of the
/// cgroup itself may be hidden; that of the container is then the topmost one.
std::optional<double> least_limit(const fs::path& hierarchy, std::string_view path) {
  std::optional<double> least;
  for (fs::path at = fs::path(path).relative_path();; at = at.parent_path()) {
    if (const auto limit = limit_in(hierarchy / at)) {
      least = std::min(*limit, least.value_or(*limit));
    }
    if (at.empty()) {
      return least;
    }
  }
}

}  // namespace

std::optional<double> cores_of_cgroups(const fs::path& hierarchy, std::string_view membership) {
  std::istringstream lines{std::string(membership)};
  std::optional<double> least;
  for (std::string line; std::getline(lines, line);) {  // NUMBER:CONTROLLERS:PATH
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && (',' + controllers + ',').find(",cpu,") == std::string::npos) {
      continue;
    }
    if (const auto limit = least_limit(hierarchy / controllers, line.substr(second + 1))) {
      least = std::min(*limit, least.value_or(*limit));
    }
  }
  return least;
}

std::uint32_t available_cores(std::span<const pid_t> processes) {
  CoreSet cores;
  for (const pid_t process : processes) {
    cores.add_affinity_of(process);
  }
  std::ifstream membership("/proc/self/cgroup");
  std::ostringstream text;
  text << membership.rdbuf();
  const double limit = cores_of_cgroups("/sys/fs/cgroup", text.str()).value_or(most_cores);
  const auto limited = static_cast<std::uint32_t>(std::ceil(std::min(limit, double{most_cores})));
  return std::max(1U, std::min(cores.count(), limited));
}

std::uint32_t available_cores() {
  const std::array self{::getpid()};
  return available_cores(self);
}

}  // namespace syncopate
