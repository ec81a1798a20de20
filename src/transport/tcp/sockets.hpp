#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "transport/port_range.hpp"
#include "transport/tcp/network.hpp"

namespace syncopate::tcp {

using Endpoint = asio::ip::tcp::endpoint;

/// Reads "127.0.0.1:9091", "[::1]:9091" or "localhost:9091".
///
/// Errors: ConfigError if the text has another form or the address is not in `network`.
Endpoint parse_address(const std::string& address, Network network = Network::loopback);

/// The same, but the host may also be a name that the system resolves.
Endpoint resolve_address(const std::string& address, Network network);

using Endpoints = std::vector<Endpoint>;

/// The most addresses of one node.
constexpr std::size_t most_addresses = 8;

/// Reads HOST:PORT,HOST:PORT... Errors: ConfigError, also for more than `most_addresses`.
Endpoints parse_addresses(const std::string& addresses, Network network);

/// Errors: ConfigError if `endpoint` is not in `network` or other nodes cannot reach it.
void require_within(Network network, const Endpoint& endpoint);

/// The text that `parse_address` reads; the same for the same endpoint.
std::string to_string(const Endpoint& endpoint);
/// The text that `parse_addresses` reads.
std::string to_string(const Endpoints& endpoints);
/// The address as it stands before the port.
std::string host_in_address(const asio::ip::address& address);

using Socket = asio::ip::tcp::socket;
using Acceptor = asio::ip::tcp::acceptor;

// The functions below ask the kernel for CLOEXEC and non-blocking sockets from the start. Asio sets
// these flags later, so that a child process could inherit a descriptor.

/// Listens at `endpoint`. Errors: ConfigError, with the system's reason.
Acceptor open_listener(asio::io_context& io, const Endpoint& endpoint);

/// The same at the first free port of `ports`, if it is not empty and the endpoint's port is 0.
/// Errors: also ConfigError if all of them are in use.
Acceptor open_listener(asio::io_context& io, Endpoint endpoint, PortRange ports);

/// Owns `descriptor`, which must be a socket that listens at an address in `network`. Errors:
/// ConfigError.
Acceptor adopt_listener(asio::io_context& io, int descriptor, Network network);

/// A socket that can connect to `endpoint`.
Socket open_socket(asio::io_context& io, const Endpoint& endpoint, asio::error_code& error);

/// The next stream that waits at `acceptor`; `error` is `would_block` if there is none.
Socket accept_from(Acceptor& acceptor, asio::io_context& io, asio::error_code& error);

/// Sends small messages at once instead of waiting for more.
void set_no_delay(Socket& socket);

/// Makes the loss of the other host, or of the way to it, an error of the socket, also of one that
/// sends nothing.
void expect_signs_of_life(Socket& socket);

/// True if the other end is a process of this host, as far as the kernel still knows.
bool is_on_this_host(const Socket& socket);

/// Shortens the buffers of a socket to a process of this host, so that they stay in the cache.
void set_short_buffers(Socket& socket);

/// The address of the other end, as far as the kernel still knows it.
std::string remote_name(const Socket& socket);
/// The same without the port; empty if the kernel does not know it any more.
std::string remote_address(const Socket& socket);

/// Ends the stream for both sides even if a forked process has a copy of the descriptor: closing
/// only this process's descriptor would not.
void end_stream(Socket& socket);
/// The same, and drops what the kernel has not sent yet, such as the rest of a probe.
void end_stream_at_once(Socket& socket);

/// True if an operation failed because the process, or the system, has no descriptor left.
bool is_lack_of_descriptors(const asio::error_code& error);

/// True if the process, after it opened `socket`, has only the descriptors left that it reserves
/// for its own files.
bool descriptors_are_scarce(Socket& socket);

}  // namespace syncopate::tcp
