#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

/// Looks up a variable of the environment; empty where it is not set.
using Environment = std::function<std::string(const char* name)>;

/// The environment of this process.
std::string from_environment(const char* name);

struct Variable {
  std::string name;
  std::string value;

  friend bool operator==(const Variable&, const Variable&) = default;
};

/// What the numeric libraries must find in the environment before they are loaded.
///
/// OpenBLAS takes processors that are younger than itself for the oldest that it knows, at a fifth
/// of their speed, unless OPENBLAS_CORETYPE says better; and it and OpenMP start a thread for every
/// core, unless the caller says how many cores a worker may use. `cpuinfo` is the text of /proc/cpuinfo.
std::vector<Variable> wanted_environment(std::string_view cpuinfo, std::uint32_t threads);

/// Sets `variables` where the user has not set them. `report` takes a line about each.
void set_environment(const std::vector<Variable>& variables,
                     const std::function<void(const std::string&)>& report);

/// The name of this host.
std::string host_name();

std::uint32_t process_id();

/// CPU seconds that all threads of this process have used so far.
double cpu_seconds();

/// The local time for the name of a run folder: "20260131-235959".
std::string time_for_a_name();

}  // namespace syncopate
