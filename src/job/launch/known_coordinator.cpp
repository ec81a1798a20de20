#include "job/launch/known_coordinator.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/errors.hpp"
#include "config/text.hpp"
#include "job/launch/job_key.hpp"
#include "transport/tcp/sockets.hpp"

namespace syncopate {
namespace {

void expect_port(const std::string& address) {
  const auto colon = address.rfind(':');
  const auto port = colon == std::string::npos
                        ? std::nullopt
                        : number_in<std::uint16_t>(address.substr(colon + 1));
  if (!port || *port == 0) {
    throw ConfigError(
        fmt::format("{}: expected HOST:PORT of the host of rank 0, with a port from 1 to 65535, "
                    "found '{}'",
                    coordinator_variable, address));
  }
}

}  // namespace

std::string own_address(const OwnPlace& place) {
  return place.interface.empty() ? std::string()
                                 : tcp::address_of_interface(place.interface) + ":0";
}

std::optional<KnownCoordinator> known_coordinator(const Environment& environment) {
  KnownCoordinator known{.address = environment(coordinator_variable), .key = {}};
  if (known.address.empty()) {
    return std::nullopt;
  }
  expect_port(known.address);
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

ListeningSocket listen_at(const std::string& address, tcp::Network network,
                          std::string_view named_by) {
  tcp::Endpoint endpoint = tcp::resolve_address(address, network);
  const int family = endpoint.protocol().family();
  ListeningSocket listener{Descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)), {}};
  const int socket = listener.socket.get();
  const int yes = 1;  // allows the address of a coordinator that has just ended
  auto size = static_cast<socklen_t>(endpoint.capacity());
  if (socket < 0 || ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(socket, endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0 ||
      ::listen(socket, SOMAXCONN) != 0 || ::getsockname(socket, endpoint.data(), &size) != 0) {
    throw ConfigError(
        fmt::format("{}: cannot listen at {}: {}", named_by, address, std::strerror(errno)));
  }
  endpoint.resize(size);
  listener.address = tcp::to_string(endpoint);
  return listener;
}

}  // namespace syncopate
