#include "transport/tcp/sockets.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <asio/ip/address.hpp>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/errors.hpp"

namespace syncopate::tcp {
namespace {

/// Descriptors that silent connections cannot take: for checkpoints, logs and other files.
constexpr rlim_t reserved_descriptors = 16;

[[noreturn]] void refuse(const std::string& address, const char* reason) {
  throw ConfigError(
      fmt::format("expected an address such as 127.0.0.1:9091, found \"{}\": {}", address, reason));
}

std::uint16_t parse_port(const std::string& address, std::string_view digits) {
  std::uint16_t port = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, port);
  if (digits.empty() || error != std::errc{} || rest != end) {
    refuse(address, "a port is a number from 0 to 65535");
  }
  return port;
}

std::string parse_host(std::string_view host) {
  if (host == "localhost") {
    return "127.0.0.1";
  }
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return std::string(bracketed ? host.substr(1, host.size() - 2) : host);
}

asio::error_code last_error() {
  return {errno, asio::error::get_system_category()};
}

[[noreturn]] void refuse(const std::string& what, const asio::error_code& error) {
  throw ConfigError(fmt::format("cannot {}: {}", what, error.message()));
}

int open_descriptor(const Endpoint& endpoint) {
  return ::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

Acceptor try_to_listen(asio::io_context& io, const Endpoint& endpoint, asio::error_code& error) {
  Acceptor acceptor(io);
  const int descriptor = open_descriptor(endpoint);
  if (descriptor < 0) {
    error = last_error();
    return acceptor;
  }
  acceptor.assign(endpoint.protocol(), descriptor);
  acceptor.set_option(Acceptor::reuse_address(true));
  acceptor.bind(endpoint, error);
  if (!error) {
    acceptor.listen(asio::socket_base::max_listen_connections, error);
  }
  acceptor.non_blocking(true);
  return acceptor;
}

/// Passes `descriptor` to Asio, which owns it from then on, or closes it.
Socket own(asio::io_context& io, const asio::ip::tcp& protocol, int descriptor,
           asio::error_code& error) {
  Socket socket(io);
  if (descriptor < 0) {
    error = last_error();
    return socket;
  }
  socket.assign(protocol, descriptor, error);
  if (error) {
    ::close(descriptor);
  } else {
    socket.non_blocking(true, error);
  }
  return socket;
}

asio::ip::tcp protocol_of(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4();
}

/// The address family of a listening socket. Errors: ConfigError if the descriptor is not one.
asio::ip::tcp require_listening(int descriptor) {
  int listening = 0;
  socklen_t length = sizeof(listening);
  if (::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) != 0) {
    refuse(fmt::format("listen on descriptor {}", descriptor), last_error());
  }
  if (listening == 0) {
    throw ConfigError(fmt::format("descriptor {} is not a listening socket", descriptor));
  }
  sockaddr_storage address{};
  length = sizeof(address);
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length);
  return protocol_of(address);
}

}  // namespace

std::string host_in_address(const asio::ip::address& address) {
  return address.is_v6() ? fmt::format("[{}]", address.to_string()) : address.to_string();
}

Endpoint parse_address(const std::string& address, Network network) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) {
    refuse(address, "the port is missing");
  }
  const std::string_view text = address;
  asio::error_code error;
  const auto host = asio::ip::make_address(parse_host(text.substr(0, colon)), error);
  if (error) {
    refuse(address, "the host is no IP address");
  }
  const Endpoint endpoint(host, parse_port(address, text.substr(colon + 1)));
  require_within(network, endpoint);
  return endpoint;
}

Endpoint resolve_address(const std::string& address, Network network) {
  const std::size_t colon = address.rfind(':');
  const std::string host = colon == std::string::npos ? "" : parse_host(address.substr(0, colon));
  asio::error_code no_number;
  asio::ip::make_address(host, no_number);
  if (!no_number || host.empty()) {
    return parse_address(address, network);
  }
  asio::io_context io;
  asio::error_code error;
  const auto found = asio::ip::tcp::resolver(io).resolve(host, "", error);
  if (error || found.empty()) {
    refuse(address, fmt::format("nothing is known of this host ({})", error.message()).c_str());
  }
  const Endpoint endpoint(found.begin()->endpoint().address(),
                          parse_port(address, std::string_view(address).substr(colon + 1)));
  require_within(network, endpoint);
  return endpoint;
}

Endpoints parse_addresses(const std::string& addresses, Network network) {
  Endpoints endpoints;
  for (std::size_t begin = 0; begin <= addresses.size();) {
    const std::size_t end = std::min(addresses.find(',', begin), addresses.size());
    endpoints.push_back(parse_address(addresses.substr(begin, end - begin), network));
    begin = end + 1;
  }
  if (endpoints.size() > most_addresses) {
    throw ConfigError(fmt::format("expected at most {} addresses of a node, found {}",
                                  most_addresses, endpoints.size()));
  }
  return endpoints;
}

void require_within(Network network, const Endpoint& endpoint) {
  if (network != Network::loopback && endpoint.address().is_unspecified()) {
    throw ConfigError(fmt::format(
        "expected an address at which other nodes find this one, found {}", to_string(endpoint)));
  }
  if (network == Network::loopback && !endpoint.address().is_loopback()) {
    throw ConfigError(
        fmt::format("expected a loopback address such as 127.0.0.1, found {}: beyond this host, "
                    "streams must be encrypted by a key that each host has; make one by "
                    "`syncopate key new FILE`, copy it to the other hosts, and give --secret FILE",
                    to_string(endpoint)));
  }
}

std::string to_string(const Endpoint& endpoint) {
  return fmt::format("{}:{}", host_in_address(endpoint.address()), endpoint.port());
}

std::string to_string(const Endpoints& endpoints) {
  std::string all;
  for (const Endpoint& endpoint : endpoints) {
    all += (all.empty() ? "" : ",") + to_string(endpoint);
  }
  return all;
}

Acceptor open_listener(asio::io_context& io, const Endpoint& endpoint) {
  asio::error_code error;
  Acceptor acceptor = try_to_listen(io, endpoint, error);
  if (error) {
    refuse(fmt::format("listen at {}", to_string(endpoint)), error);
  }
  return acceptor;
}

Acceptor open_listener(asio::io_context& io, Endpoint endpoint, PortRange ports) {
  if (!ports || endpoint.port() != 0) {
    return open_listener(io, endpoint);
  }
  for (std::uint32_t port = ports.first; port <= ports.last; ++port) {
    endpoint.port(static_cast<std::uint16_t>(port));
    asio::error_code error;
    Acceptor acceptor = try_to_listen(io, endpoint, error);
    if (!error) {
      return acceptor;
    }
    if (error != asio::error::address_in_use) {
      refuse(fmt::format("listen at {}", to_string(endpoint)), error);
    }
  }
  throw ConfigError(
      fmt::format("expected a free port from {} to {} at {}, found all in use; "
                  "each process of a host takes one: give more ports",
                  ports.first, ports.last, host_in_address(endpoint.address())));
}

Acceptor adopt_listener(asio::io_context& io, int descriptor, Network network) {
  const asio::ip::tcp protocol = require_listening(descriptor);
  Acceptor acceptor(io, protocol, descriptor);
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  require_within(network, acceptor.local_endpoint());
  acceptor.non_blocking(true);
  return acceptor;
}

Socket open_socket(asio::io_context& io, const Endpoint& endpoint, asio::error_code& error) {
  return own(io, endpoint.protocol(), open_descriptor(endpoint), error);
}

Socket accept_from(Acceptor& acceptor, asio::io_context& io, asio::error_code& error) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  const int descriptor = ::accept4(acceptor.native_handle(), reinterpret_cast<sockaddr*>(&address),
                                   &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
  return own(io, protocol_of(address), descriptor, error);
}

void set_no_delay(Socket& socket) {
  asio::error_code ignored;  // the first read reports a socket that broke meanwhile
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
}

/// The system gives up a connection over which nothing has come or been acknowledged for this time.
/// Longer than the usual limit of waits, which names what is missing.
constexpr int seconds_of_silence = 100;

void expect_signs_of_life(Socket& socket) {
  constexpr int seconds_between_probes = 20;
  using KeepIdle = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
  using KeepInterval = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPINTVL>;
  using UserTimeout = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;
  asio::error_code ignored;  // the first read reports a socket that broke meanwhile
  socket.set_option(Socket::keep_alive(true), ignored);
  socket.set_option(KeepIdle(seconds_between_probes), ignored);
  socket.set_option(KeepInterval(seconds_between_probes), ignored);
  socket.set_option(UserTimeout(1000 * seconds_of_silence), ignored);
}

bool is_on_this_host(const Socket& socket) {
  asio::error_code gone;
  const Endpoint here = socket.local_endpoint(gone);
  const Endpoint there = socket.remote_endpoint(gone);
  return !gone && here.address() == there.address();
}

/// By default, buffers grow to many megabytes, which long distances need; within a host, such
/// buffers do not fit the cache. Shorter ones make both sides wait more often: with 256 KiB, an
/// allreduce of 1 MB was measured to take twice as long.
void set_short_buffers(Socket& socket) {
  constexpr int bytes = 1024 * 1024;
  asio::error_code ignored;  // the first read reports it
  socket.set_option(Socket::send_buffer_size(bytes), ignored);
  socket.set_option(Socket::receive_buffer_size(bytes), ignored);
}

std::string remote_name(const Socket& socket) {
  asio::error_code error;
  const Endpoint endpoint = socket.remote_endpoint(error);
  return error ? "an address that is gone" : to_string(endpoint);
}

std::string remote_address(const Socket& socket) {
  asio::error_code error;
  const Endpoint endpoint = socket.remote_endpoint(error);
  return error ? std::string() : endpoint.address().to_string();
}

void end_stream(Socket& socket) {
  asio::error_code ignored;  // the descriptor is gone in any case
  socket.shutdown(Socket::shutdown_both, ignored);
  socket.close(ignored);
}

void end_stream_at_once(Socket& socket) {
  asio::error_code ignored;  // the stream ends in any case
  socket.set_option(asio::socket_base::linger(true, 0), ignored);
  end_stream(socket);
}

bool is_lack_of_descriptors(const asio::error_code& error) {
  return error == asio::error::no_descriptors || error.value() == ENFILE;
}

/// The kernel assigns the lowest free number, so all numbers below the socket's are taken.
bool descriptors_are_scarce(Socket& socket) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
         static_cast<rlim_t>(socket.native_handle()) + reserved_descriptors >= limit.rlim_cur;
}

}  // namespace syncopate::tcp
