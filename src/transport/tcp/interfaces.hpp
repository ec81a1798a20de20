#pragma once

#include <asio/io_context.hpp>
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

/// `first`, and one that listens at the same port of each other address at which other hosts may
/// find this one, which is none of loopback or of a single link. An address whose port is in use is
/// skipped. At most `most_addresses`.
std::vector<Acceptor> on_all_interfaces(asio::io_context& io, Acceptor first);

/// Those of a node's addresses that may lead from here to that node. An address that this host
/// has, too, as the bridges of containers have, leads to this host. So if the node is on this host,
/// which its first address shows, that one alone.
Endpoints leading_there(const Endpoints& addresses);

}  // namespace syncopate::tcp
