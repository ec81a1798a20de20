#include "transport/tcp/node.hpp"

#include <fmt/format.h>

#include <asio/post.hpp>
#include <future>
#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "transport/steady_time.hpp"

namespace syncopate::tcp {
namespace {

std::unique_ptr<shm::HostMemory> make_memory(shm::HostMemory::Check check) {
  try {
    return std::make_unique<shm::HostMemory>(std::move(check));
  } catch (const DataError& error) {
    log::warn("{}; nodes of this host talk through sockets", error.what());
    return nullptr;
  }
}

}  // namespace

Node::Node(Options options)
    : token_(std::move(options.token)),
      limits_(options.limits),
      network_(options.network),
      memory_(options.shares_memory ? make_memory([this](NodeId peer) { check(peer); }) : nullptr),
      work_(asio::make_work_guard(io_)),
      mailbox_(
          options.limits.unclaimed_limit,
          [this](NodeId peer) { asio::post(io_, [this, peer] { resume(find(peer)); }); },
          [this](const auto& done, TimePoint until) { driver_.make_progress(done, until); }),
      driver_(io_, [this](const std::exception& error) { fail(error); }) {}

Node::~Node() {
  close(steady_now());
}

void Node::listen(const ListenOptions& options) {
  listener_.emplace(io_, options.descriptor
                             ? adopt_listener(io_, *options.descriptor, network_)
                             : open_listener(io_, parse_address(options.address, network_)));
  if (memory_) {
    memory_->introduce(self_, memory_->address());
  }
  driver_.start();
  asio::post(io_, [this] { accept(); });
}

void Node::join(const JoinOptions& options) {
  const Endpoint endpoint = parse_address(options.coordinator, network_);
  listener_.emplace(io_, open_listener(io_, parse_address(options.address, network_)));
  driver_.start();
  // Owned by the handler as well, which may still be in it when this function has the answer.
  const auto answered = std::make_shared<std::promise<Contact>>();
  std::unique_ptr<shm::Duplex> rings = make_rings();
  asio::post(io_, [=, this, greeting = hello(rings.get())] {
    dial_until_there(io_, {endpoint, greeting, options.timeout},
                     [answered](Contact contact) { answered->set_value(std::move(contact)); });
  });
  Contact contact = answered->get_future().get();
  if (contact.error) {
    std::rethrow_exception(contact.error);
  }
  self_ = NodeId{contact.welcome.you()};
  if (!contact.welcome.has_memory()) {
    memory_.reset();
  }
  if (memory_) {
    memory_->introduce(self_, memory_->address());
  }
  const std::lock_guard lock(mutex_);
  Peer& coordinator = add(coordinator_node, to_string(endpoint));
  coordinator.rings = std::move(rings);
  asio::post(io_, [this, &coordinator, contact = std::move(contact)]() mutable {
    settle(coordinator, std::move(contact));
    accept();
  });
}

/// While `error` is being handled.
void Node::fail(const std::exception& error) {
  log::warn("the transport failed: {}", error.what());
  cancel(std::current_exception());
}

void Node::introduce(NodeId peer, const std::string& address) {
  const std::string where = to_string(parse_address(address, network_));
  const std::lock_guard lock(mutex_);
  if (stopped_) {
    std::rethrow_exception(stopped_);
  }
  if (peer == self_) {
    return;
  }
  if (const auto known = peers_.find(peer); known != peers_.end()) {
    if (known->second->address != where) {
      throw InternalError(fmt::format("node {} is at {}, but was introduced at {}", peer.value,
                                      known->second->address, where));
    }
    return;
  }
  Peer& added = add(peer, where);
  if (peer < self_) {
    asio::post(io_, [this, &added] { dial_peer(added); });
  }
}

std::unique_ptr<Transfer> Node::start_send(NodeId to, Tag tag, std::span<const std::byte> payload) {
  return find(to).outbox.start_send(tag, payload);
}

std::unique_ptr<Transfer> Node::start_receive(NodeId from, Tag tag, std::span<std::byte> into) {
  return mailbox_.start_receive(find(from).id, tag, into);
}

void Node::post(NodeId to, Tag tag, std::vector<std::byte> payload) {
  find(to).outbox.post(tag, std::move(payload));
}

Message Node::receive(std::optional<NodeId> from, Tag tag, TimePoint deadline) {
  if (from) {
    find(*from);
  }
  return mailbox_.receive(from, tag, deadline);
}

void Node::give_up(NodeId peer) {
  Peer& given_up = find(peer);
  asio::post(io_, [this, &given_up] { part_with(given_up, "this node has given it up"); });
}

Traffic Node::traffic() const {
  Traffic sum;
  for (const Peer* const peer : peers()) {
    const Traffic part = peer->outbox.traffic();
    sum.bytes_sent += part.bytes_sent;
    sum.messages_sent += part.messages_sent;
  }
  sum.bytes_zero_copy = memory_ ? memory_->bytes_zero_copy() : 0;
  return sum;
}

Traffic Node::traffic_to(NodeId peer) const {
  for (const Peer* const one : peers()) {
    if (one->id == peer) {
      return one->outbox.traffic();
    }
  }
  return {};
}

void Node::cancel(std::exception_ptr why) noexcept {
  stop(why);
  for (Peer* const peer : peers()) {
    peer->outbox.cancel(why);
  }
}

void Node::close(TimePoint deadline) noexcept {
  stop(std::make_exception_ptr(Cancelled("this node's transport was closed")));
  const std::lock_guard lock(closing_);
  if (!driver_.is_started()) {
    return;
  }
  say_goodbye(deadline);
  asio::post(io_, [this] { disconnect(); });
  driver_.join();
}

/// Nothing begins any more; what is waited for ends with `why`. What was sent still leaves.
void Node::stop(const std::exception_ptr& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) {
      stopped_ = why;
    }
  }
  mailbox_.cancel(why);
  for (Peer* const peer : peers()) {
    peer->outbox.refuse(why);
  }
}

/// A stream that is closed with bytes unread destroys bytes that are under way the other way. So
/// each side says that it will send no more, and reads until the other has said so, too.
void Node::say_goodbye(TimePoint deadline) {
  for (Peer* const peer : peers()) {
    peer->outbox.wait_until_empty(deadline);
  }
  asio::post(io_, [this] { leave(); });
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, to_steady(deadline), [this] { return connections_ == 0; });
}

/// Throws where this node is stopped or the peer is lost.
void Node::check(NodeId peer) const {
  const std::lock_guard lock(mutex_);
  if (stopped_) {
    std::rethrow_exception(stopped_);
  }
  const auto found = peers_.find(peer);
  if (found != peers_.end() && found->second->lost_by) {
    std::rethrow_exception(found->second->lost_by);
  }
}

Peer& Node::find(NodeId peer) const {
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(peer);
  if (found == peers_.end()) {
    throw InternalError(
        fmt::format("node {} was never introduced and never made contact", peer.value));
  }
  return *found->second;
}

Peer& Node::add(NodeId peer, const std::string& address) {
  const Outbox::Engine engine{
      [this, peer] { asio::post(io_, [this, peer] { flush(find(peer)); }); },
      [this, peer] { asio::post(io_, [this, peer] { cut(find(peer)); }); },
      [this](const auto& done, TimePoint until) { driver_.make_progress(done, until); },
  };
  Peer& added = *(peers_[peer] = std::make_unique<Peer>(peer, address, engine));
  if (stopped_) {
    added.outbox.refuse(stopped_);
  }
  return added;
}

std::vector<Peer*> Node::peers() const {
  const std::lock_guard lock(mutex_);
  std::vector<Peer*> all;
  for (const auto& [id, peer] : peers_) {
    all.push_back(peer.get());
  }
  return all;
}

}  // namespace syncopate::tcp
