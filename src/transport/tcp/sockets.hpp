#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include "transport/tcp/address.hpp"

/// Making sockets. Asio's own ways leave a moment in which a child process inherits a descriptor;
/// these ask the kernel for CLOEXEC and non-blocking sockets from the start.
namespace syncopate::tcp {

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
