#include "transport/tcp/tcp_transport.hpp"

#include <utility>

#include "transport/tcp/node.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate {

namespace {

template <class Options>
std::unique_ptr<tcp::Node> make_node(const Options& options) {
  return std::make_unique<tcp::Node>(tcp::Node::Options{
      .token = options.token,
      .shares_memory = options.shared_memory,
      .network = options.unencrypted ? tcp::Network::trusted : tcp::Network::loopback,
      .limits = options.limits});
}

}  // namespace

std::unique_ptr<TcpTransport> TcpTransport::listen(const ListenOptions& options) {
  auto node = make_node(options);
  node->listen(options);
  return node;
}

std::unique_ptr<TcpTransport> TcpTransport::join(const JoinOptions& options) {
  auto node = make_node(options);
  node->join(options);
  return node;
}

namespace {

/// Sockets need nothing but an address, and rings in shared memory fall back to them.
bool is_available(const TransportOptions&) {
  return true;
}

template <bool shared_memory>
std::unique_ptr<Transport> listen_with(const TransportOptions& options) {
  return TcpTransport::listen({.token = options.token,
                               .address = options.address,
                               .descriptor = options.descriptor,
                               .shared_memory = shared_memory,
                               .unencrypted = options.unencrypted});
}

template <bool shared_memory>
std::unique_ptr<Transport> join_with(const TransportOptions& options) {
  TcpTransport::JoinOptions join{.coordinator = options.coordinator,
                                 .token = options.token,
                                 .address = options.address,
                                 .shared_memory = shared_memory,
                                 .unencrypted = options.unencrypted};
  join.timeout = options.timeout.value_or(join.timeout);
  return TcpTransport::join(join);
}

}  // namespace

/// Sockets, beside rings in the memory that the nodes of one host share.
TransportSpec shm_transport() {
  return {"shm", is_available, listen_with<true>, join_with<true>};
}

/// Sockets alone.
TransportSpec tcp_transport() {
  return {"tcp", is_available, listen_with<false>, join_with<false>};
}

}  // namespace syncopate
