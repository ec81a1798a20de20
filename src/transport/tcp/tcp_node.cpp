#include "transport/tcp/tcp_node.hpp"

#include <asio/post.hpp>
#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "transport/steady_time.hpp"
#include "transport/tcp/interfaces.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate::tcp {

Node::Node(Connections::Options options)
    : work_(asio::make_work_guard(io_)),
      mailbox_(
          options.limits.unclaimed_limit, [this](NodeId peer) { connections_.resume(peer); },
          [this](const auto& done, TimePoint until) { driver_.make_progress(done, until); }),
      connections_(
          io_, mailbox_,
          [this](const auto& done, TimePoint until) { driver_.make_progress(done, until); },
          std::move(options)),
      driver_(io_, [this](const std::exception& error) { fail(error); }) {}

Node::~Node() {
  close(steady_now());
}

void Node::listen(const ListenOptions& options) {
  connections_.listen(options);
  driver_.start();
  asio::post(io_, [this] { connections_.accept(); });
}

void Node::join(const JoinOptions& options) {
  const Endpoint coordinator = connections_.open_listeners(options);
  driver_.start();
  connections_.join(coordinator, options.timeout);
}

/// Call this while `error` is being handled.
void Node::fail(const std::exception& error) {
  log::warn("the transport failed: {}", error.what());
  cancel(std::current_exception());
}

void Node::introduce(NodeId peer, const std::string& address) {
  connections_.introduce(peer, address);
}

std::unique_ptr<Transfer> Node::start_send(NodeId to, Tag tag, std::span<const std::byte> payload) {
  return connections_.find(to).outbox.start_send(tag, payload);
}

std::unique_ptr<Transfer> Node::start_receive(NodeId from, Tag tag, std::span<std::byte> into) {
  return mailbox_.start_receive(connections_.find(from).id, tag, into);
}

void Node::post(NodeId to, Tag tag, std::vector<std::byte> payload) {
  connections_.find(to).outbox.post(tag, std::move(payload));
}

std::optional<Message> Node::try_receive(std::optional<NodeId> from, Tag tag, TimePoint deadline) {
  if (from) {
    connections_.find(*from);
  }
  return mailbox_.try_receive(from, tag, deadline);
}

Traffic Node::traffic() const {
  Traffic total;
  for (const Peer* const peer : connections_.peers()) {
    const Traffic part = peer->outbox.traffic();
    total.bytes_sent += part.bytes_sent;
    total.messages_sent += part.messages_sent;
  }
  const shm::HostMemory* const memory = connections_.memory();
  total.bytes_zero_copy = memory != nullptr ? memory->bytes_zero_copy() : 0;
  return total;
}

Traffic Node::traffic_to(NodeId peer) const {
  for (const Peer* const one : connections_.peers()) {
    if (one->id == peer) {
      return one->outbox.traffic();
    }
  }
  return {};
}

void Node::cancel(std::exception_ptr why) noexcept {
  stop(why);
  for (Peer* const peer : connections_.peers()) {
    peer->outbox.cancel(why);
  }
}

void Node::close(TimePoint deadline) noexcept {
  stop(std::make_exception_ptr(Cancelled("this node's transport was closed")));
  const MutexLock lock(closing_);
  if (!driver_.is_started()) {
    return;
  }
  for (Peer* const peer : connections_.peers()) {
    peer->outbox.wait_until_empty(deadline);
  }
  connections_.say_goodbye(deadline);
  asio::post(io_, [this] {
    connections_.disconnect();
    io_.stop();
  });
  driver_.join();
}

/// Ends every wait with `why`, and refuses operations that begin later. Messages that were sent
/// before still leave.
void Node::stop(const std::exception_ptr& why) {
  connections_.stop(why);
  mailbox_.cancel(why);
  for (Peer* const peer : connections_.peers()) {
    peer->outbox.refuse(why);
  }
}

}  // namespace syncopate::tcp

namespace syncopate {
namespace {

template <class Options>
std::unique_ptr<tcp::Node> make_node(const Options& options, bool control_only) {
  return std::make_unique<tcp::Node>(
      tcp::Connections::Options{.token = options.token,
                                .shares_memory = options.shared_memory,
                                .control_only = control_only,
                                .network = options.network,
                                .limits = options.limits});
}

tcp::Network network_of(const TransportOptions& options) {
  if (options.unencrypted) {
    return tcp::Network::trusted;
  }
  return options.encrypted ? tcp::Network::encrypted : tcp::Network::loopback;
}

/// Always available: a socket needs only an address, and rings in shared memory fall back to
/// sockets.
bool is_available(const TransportOptions&) {
  return true;
}

template <bool shared_memory>
std::unique_ptr<Transport> listen_with(const TransportOptions& options) {
  return TcpTransport::listen({.token = options.token,
                               .address = options.address,
                               .descriptor = options.descriptor,
                               .shared_memory = shared_memory,
                               .network = network_of(options),
                               .control_only = options.control_only});
}

template <bool shared_memory>
std::unique_ptr<Transport> join_with(const TransportOptions& options) {
  const std::string address = options.interface.empty()
                                  ? options.address
                                  : tcp::address_of_interface(options.interface) + ":0";
  TcpTransport::JoinOptions join{.coordinator = options.coordinator,
                                 .token = options.token,
                                 .address = address,
                                 .ports = options.ports,
                                 .all_interfaces = options.interface.empty(),
                                 .shared_memory = shared_memory,
                                 .network = network_of(options)};
  join.timeout = options.timeout.value_or(join.timeout);
  return TcpTransport::join(join);
}

}  // namespace

std::unique_ptr<TcpTransport> TcpTransport::listen(const ListenOptions& options) {
  auto node = make_node(options, options.control_only);
  node->listen(options);
  return node;
}

std::unique_ptr<TcpTransport> TcpTransport::join(const JoinOptions& options) {
  auto node = make_node(options, false);
  node->join(options);
  return node;
}

/// Sockets, and rings in shared memory between the nodes of one host.
TransportSpec shm_transport() {
  return {"shm", is_available, listen_with<true>, join_with<true>};
}

/// Only sockets.
TransportSpec tcp_transport() {
  return {"tcp", is_available, listen_with<false>, join_with<false>};
}

}  // namespace syncopate
