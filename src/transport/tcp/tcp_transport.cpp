#include "transport/tcp/tcp_transport.hpp"

#include <utility>

#include "transport/tcp/node.hpp"

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

}  // namespace syncopate
