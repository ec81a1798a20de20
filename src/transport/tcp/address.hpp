#pragma once

#include <asio/ip/tcp.hpp>
#include <string>

namespace syncopate::tcp {

using Endpoint = asio::ip::tcp::endpoint;

/// Reads "127.0.0.1:9091", "[::1]:9091" or "localhost:9091".
///
/// Errors: ConfigError: anything else, and every address that is not loopback, because streams are
///         not encrypted yet.
Endpoint parse_address(const std::string& address);

/// Errors: ConfigError, unless `endpoint` is a loopback address.
void require_loopback(const Endpoint& endpoint);

/// What `parse_address` reads; the same text for the same endpoint.
std::string to_string(const Endpoint& endpoint);

}  // namespace syncopate::tcp
