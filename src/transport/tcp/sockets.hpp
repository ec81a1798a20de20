#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <string>

namespace syncopate::tcp {

using Endpoint = asio::ip::tcp::endpoint;

/// Where nodes may be: streams are not encrypted yet, so they leave the machine only where somebody has
/// said that its network is trusted.
enum class Network { loopback, trusted };

/// Reads "127.0.0.1:9091", "[::1]:9091" or "localhost:9091".
///
/// Errors: ConfigError: anything else, and an address that is not in `network`.
Endpoint parse_address(const std::string& address, Network network = Network::loopback);

/// Errors: ConfigError, unless `endpoint` is in `network`; there it is an address at which others find it.
void require_within(Network network, const Endpoint& endpoint);

/// What `parse_address` reads; the same text for the same endpoint.
std::string to_string(const Endpoint& endpoint);

using Socket = asio::ip::tcp::socket;
using Acceptor = asio::ip::tcp::acceptor;

/// Listens at `endpoint`. Errors: ConfigError, with the system's reason.
Acceptor open_listener(asio::io_context& io, const Endpoint& endpoint);

/// Owns `descriptor`, which must be a socket that listens at an address in `network`. Errors: ConfigError.
Acceptor adopt_listener(asio::io_context& io, int descriptor, Network network);

/// A socket that can connect to `endpoint`.
Socket open_socket(asio::io_context& io, const Endpoint& endpoint, asio::error_code& error);

/// The next stream that waits at `acceptor`; `error` is `would_block` where there is none.
Socket accept_from(Acceptor& acceptor, asio::io_context& io, asio::error_code& error);

/// Sends small messages at once instead of waiting for more.
void set_no_delay(Socket& socket);

/// Whether the other end is a process of this host, as far as the kernel still knows.
bool is_on_this_host(const Socket& socket);

/// Keeps what is under way to a process of this host in the cache.
void set_short_buffers(Socket& socket);

/// Who is at the other end, as far as the kernel still knows.
std::string remote_name(const Socket& socket);

}  // namespace syncopate::tcp
