#include "transport/tcp/address.hpp"

#include <fmt/format.h>

#include <asio/ip/address.hpp>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "base/errors.hpp"

namespace syncopate::tcp {
namespace {

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

}  // namespace

Endpoint parse_address(const std::string& address, Network network) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) {
    refuse(address, "the port is missing");
  }
  const std::string_view text = address;
  asio::error_code error;
  const auto host = asio::ip::make_address(parse_host(text.substr(0, colon)), error);
  if (error) {
    refuse(address, network == Network::loopback
                        ? "the host is no IP address; until streams are encrypted, use loopback"
                        : "the host is no IP address");
  }
  const Endpoint endpoint(host, parse_port(address, text.substr(colon + 1)));
  require_within(network, endpoint);
  return endpoint;
}

void require_within(Network network, const Endpoint& endpoint) {
  if (network == Network::trusted && endpoint.address().is_unspecified()) {
    throw ConfigError(fmt::format(
        "expected an address at which other nodes find this one, found {}", to_string(endpoint)));
  }
  if (network == Network::loopback && !endpoint.address().is_loopback()) {
    throw ConfigError(
        fmt::format("expected a loopback address such as 127.0.0.1, found {}: streams are not "
                    "encrypted yet, so nothing else is accepted",
                    to_string(endpoint)));
  }
}

std::string to_string(const Endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  if (endpoint.address().is_v6()) {
    return fmt::format("[{}]:{}", host, endpoint.port());
  }
  return fmt::format("{}:{}", host, endpoint.port());
}

}  // namespace syncopate::tcp
