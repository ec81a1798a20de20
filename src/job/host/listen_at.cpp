#include "job/host/listen_at.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/errors.hpp"
#include "transport/tcp/sockets.hpp"

namespace syncopate {

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
