#include "cli/exit_status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include "base/errors.hpp"

namespace syncopate::cli {

int status_of(const std::exception& error) {
  if (dynamic_cast<const ConfigError*>(&error) || dynamic_cast<const DataError*>(&error)) {
    return exit_status::refused;
  }
  return dynamic_cast<const Cancelled*>(&error) ? exit_status::interrupted : exit_status::failure;
}

int guarded(const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    print_error(error.what());
    return status_of(error);
  }
}

void print_error(const char* message) {
  std::string line = message;
  std::replace(line.begin(), line.end(), '\n', ' ');
  // One call, so that the lines of several processes do not mix.
  fmt::print(stderr, "{}", fmt::format("syncopate: {}\n", line));
}

}  // namespace syncopate::cli
