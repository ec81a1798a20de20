#include "transport/tcp/interfaces.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <asio/ip/address.hpp>
#include <asio/ip/udp.hpp>
#include <asio/system_error.hpp>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include "base/errors.hpp"
#include "base/log.hpp"

namespace syncopate::tcp {
namespace {

using Interfaces = std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)>;

/// A list; an interface is in it once for each of its addresses.
Interfaces all_interfaces() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) {
    throw ConfigError(
        fmt::format("cannot list the network interfaces of this host: {}", std::strerror(errno)));
  }
  return {all, &::freeifaddrs};
}

/// Empty if it has none of IP.
std::optional<asio::ip::address> address_of(const ifaddrs& interface) {
  const int family = interface.ifa_addr == nullptr ? AF_UNSPEC : interface.ifa_addr->sa_family;
  if (family != AF_INET && family != AF_INET6) {
    return std::nullopt;
  }
  Endpoint endpoint;
  std::memcpy(endpoint.data(), interface.ifa_addr,
              family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  return endpoint.address();
}

bool reaches_other_hosts(const asio::ip::address& address) {
  const bool is_link_local =
      address.is_v6() ? address.to_v6().is_link_local() : address.to_v4().to_uint() >> 16 == 0xa9fe;
  return !address.is_loopback() && !address.is_unspecified() && !is_link_local;
}

/// For each interface that is up and has an address at which other hosts may find this one: its
/// first one, of the version of `like` if it has one.
Addresses one_of_each_interface(const asio::ip::address& like) {
  std::map<std::string, asio::ip::address> chosen;
  const Interfaces all = all_interfaces();
  for (const ifaddrs* one = all.get(); one != nullptr; one = one->ifa_next) {
    const auto address = address_of(*one);
    if (!address || (one->ifa_flags & IFF_UP) == 0 || !reaches_other_hosts(*address)) {
      continue;
    }
    asio::ip::address& known = chosen.try_emplace(one->ifa_name, *address).first->second;
    const bool is_better = known.is_v4() != like.is_v4() && address->is_v4() == like.is_v4();
    known = is_better || *address == like ? *address : known;
  }
  Addresses addresses;
  for (const auto& [interface, address] : chosen) {
    addresses.push_back(address);
  }
  return addresses;
}

}  // namespace

Addresses own_addresses() {
  Addresses addresses;
  const Interfaces all = all_interfaces();
  for (const ifaddrs* one = all.get(); one != nullptr; one = one->ifa_next) {
    const auto address = address_of(*one);
    if (address && (one->ifa_flags & IFF_UP) != 0) {
      addresses.push_back(*address);
    }
  }
  return addresses;
}

/// A socket knows its address once it has a route; it sends nothing.
std::string address_towards(const Endpoint& there) {
  asio::io_context io;
  asio::ip::udp::socket route(io);
  asio::error_code error;
  route.connect({there.address(), there.port()}, error);
  if (error) {
    throw ConfigError(
        fmt::format("this host finds no way to {}: {}", to_string(there), error.message()));
  }
  return host_in_address(route.local_endpoint().address());
}

std::string address_of_interface(const std::string& name) {
  std::string known;
  const Interfaces all = all_interfaces();
  for (const ifaddrs* one = all.get(); one != nullptr; one = one->ifa_next) {
    const auto address = address_of(*one);
    if (address && name == one->ifa_name) {
      return host_in_address(*address);
    }
    const bool is_first = known.find(fmt::format(" {},", one->ifa_name)) == std::string::npos;
    known += is_first ? fmt::format(" {},", one->ifa_name) : "";
  }
  throw ConfigError(
      fmt::format("expected a network interface that has an address, found '{}'; this host has{}",
                  name, known.substr(0, known.size() - 1)));
}

std::vector<Acceptor> on_all_interfaces(asio::io_context& io, Acceptor first) {
  const Endpoint known = first.local_endpoint();
  std::vector<Acceptor> acceptors;
  acceptors.push_back(std::move(first));
  for (const asio::ip::address& address : one_of_each_interface(known.address())) {
    if (address == known.address() || acceptors.size() == most_addresses) {
      continue;
    }
    const Endpoint endpoint(address, known.port());
    try {
      acceptors.push_back(open_listener(io, endpoint));
    } catch (const ConfigError& error) {
      log::debug("other nodes do not find this one at {}: {}", to_string(endpoint), error.what());
    }
  }
  return acceptors;
}

Endpoints leading_there(const Endpoints& addresses, const Addresses& own) {
  const auto is_own = [&](const Endpoint& endpoint) {
    return std::find(own.begin(), own.end(), endpoint.address()) != own.end();
  };
  if (is_own(addresses.front())) {
    return {addresses.front()};
  }
  Endpoints foreign;
  std::remove_copy_if(addresses.begin(), addresses.end(), std::back_inserter(foreign), is_own);
  return foreign;
}

}  // namespace syncopate::tcp
