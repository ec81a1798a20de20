#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

/// Looks up a variable of the environment; empty if it is not set.
using Environment = std::function<std::string(const char* name)>;

/// The environment of this process.
std::string from_environment(const char* name);

struct Variable {
  std::string name;
  std::string value;

  friend bool operator==(const Variable&, const Variable&) = default;
};

/// The variables that the numeric libraries need before they are loaded.
///
/// OpenBLAS treats an unknown, newer processor as the oldest one that it knows, at a fifth of the
/// speed; OPENBLAS_CORETYPE corrects this. OpenBLAS and OpenMP start a thread for every core; the
/// variables limit them to `threads`. `cpuinfo` is the text of /proc/cpuinfo.
std::vector<Variable> wanted_environment(std::string_view cpuinfo, std::uint32_t threads);

/// Sets the `variables` that the user has not set. `report` receives a line about each.
void set_environment(const std::vector<Variable>& variables,
                     const std::function<void(const std::string&)>& report);

/// True if the user has settings of glibc's malloc: mallopt(3), GLIBC_TUNABLES.
bool sets_malloc(const Environment& environment);

/// The name of this host.
std::string host_name();

std::uint32_t process_id();

/// CPU seconds that all threads of this process have used so far.
double cpu_seconds();

/// Seconds since 1970, for the files of other programs.
double wall_seconds();

/// The local time for the name of a run folder: "20260131-235959".
std::string time_for_a_name();

}  // namespace syncopate
