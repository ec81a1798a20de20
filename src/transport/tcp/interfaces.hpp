#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/address.hpp>
#include <string>
#include <vector>

#include "transport/tcp/sockets.hpp"

/// The network interfaces of this host.
namespace syncopate::tcp {

/// The address of this host from which it reaches `there`. Errors: ConfigError if it finds no way.
std::string address_towards(const Endpoint& there);

/// The address of a network interface of this host, for a HOST:PORT. Errors: ConfigError if there
/// is no such interface, or if it has no address.
std::string address_of_interface(const std::string& name);

using Addresses = std::vector<asio::ip::address>;

/// The addresses of all interfaces of this host that are up.
Addresses own_addresses();

/// `first`, and one that listens at the same port of each other interface by which other hosts may
/// find this one: at its first address of the same version of IP, or else of the other one.
/// Addresses of loopback and of a single link are none of these. An interface whose port is in use
/// is skipped. At most `most_addresses`.
std::vector<Acceptor> on_all_interfaces(asio::io_context& io, Acceptor first);

/// Those of a node's addresses that seem to lead from here to that node, if this host has the
/// addresses `own`. One that this host has, too, as the bridges of containers have, leads to this
/// host. If the first one is such an address, the node seems to be on this host, and the result is
/// that address.
Endpoints leading_there(const Endpoints& addresses, const Addresses& own);

}  // namespace syncopate::tcp
