#include "transport/tcp/tcp_transport.hpp"

#include <utility>

#include "transport/tcp/node.hpp"

namespace syncopate {

std::unique_ptr<TcpTransport> TcpTransport::listen(const ListenOptions& options) {
  auto node = std::make_unique<tcp::Node>(options.token, options.shared_memory, options.limits);
  node->listen(options);
  return node;
}

std::unique_ptr<TcpTransport> TcpTransport::join(const JoinOptions& options) {
  auto node = std::make_unique<tcp::Node>(options.token, options.shared_memory, options.limits);
  node->join(options);
  return node;
}

}  // namespace syncopate
