#pragma once

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

}  // namespace syncopate::tcp
