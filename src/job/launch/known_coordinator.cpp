#include "job/launch/known_coordinator.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include "base/errors.hpp"
#include "config/text.hpp"
#include "job/launch/job_key.hpp"

namespace syncopate {
void expect_port(const std::string& address, std::string_view named_by) {
  const auto colon = address.rfind(':');
  const auto port = colon == std::string::npos
                        ? std::nullopt
                        : number_in<std::uint16_t>(address.substr(colon + 1));
  constexpr std::uint16_t most = std::numeric_limits<std::uint16_t>::max() - 1;
  if (!port || *port == 0 || *port > most) {
    throw ConfigError(
        fmt::format("{}: expected HOST:PORT of the host of rank 0, with a port from 1 to {}, "
                    "found '{}'",
                    named_by, most, address));
  }
}

std::optional<KnownCoordinator> known_coordinator(const Environment& environment) {
  KnownCoordinator known{.address = environment(coordinator_variable), .key = {}};
  if (known.address.empty()) {
    return std::nullopt;
  }
  expect_port(known.address, coordinator_variable);
  const std::string file = environment(key_file_variable);
  if (file.empty()) {
    throw ConfigError(
        fmt::format("{0} is set, so {1} must name the key that encrypts the job: make one by "
                    "`syncopate key new FILE`, copy it to each host, and set {1} on all ranks",
                    coordinator_variable, key_file_variable));
  }
  known.key = read_key(file, key_file_variable);
  known.place = own_place(environment);
  return known;
}

}  // namespace syncopate
