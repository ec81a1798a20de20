#include "transport/mpi/node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "transport/mpi/mpi_allreduce.hpp"
#include "transport/native_allreduce.hpp"
#include "transport/steady_time.hpp"

namespace syncopate::mpi {
namespace {

/// Bytes that a peer may have sent and nobody has taken.
constexpr std::size_t unclaimed_limit = std::size_t{1} << 28;
/// What a peer that lives needs by far to say goodbye.
constexpr Duration farewell = std::chrono::seconds(5);

std::unique_ptr<shm::HostMemory> make_memory(shm::HostMemory::Check check) {
  try {
    return std::make_unique<shm::HostMemory>(std::move(check));
  } catch (const DataError& error) {
    log::warn("{}; nodes of this host share no memory", error.what());
    return nullptr;
  }
}

}  // namespace

/// A send from a lent buffer.
class Sending final : public Transfer {
 public:
  Sending(Node& node, NodeId to, QueuedMessage message)
      : node_(node), to_(to), handle_(message.handle = std::make_shared<SendHandle>()) {
    const auto lock = node.engine_.acquire_lock();
    node.find(to).sender().hand_over(std::move(message));
  }
  ~Sending() override { node_.await_handle(*handle_, no_deadline); }
  Sending(const Sending&) = delete;
  Sending& operator=(const Sending&) = delete;

  void wait(TimePoint deadline) override {
    if (!node_.await_handle(*handle_, deadline)) {
      const auto lock = node_.engine_.acquire_lock();
      node_.find(to_).lose("a send to it timed out, which cut the stream");
      throw TimedOut(
          fmt::format("node {} did not take a message before the deadline; the stream to it is cut",
                      to_.value));
    }
    if (handle_->error) {
      std::rethrow_exception(handle_->error);
    }
  }

 private:
  Node& node_;
  const NodeId to_;
  const std::shared_ptr<SendHandle> handle_;
};

/// The process's allreduce, for one node.
class Node::NodeAllreduce final : public NativeAllreduce {
 public:
  NodeAllreduce(Node& node, MpiAllreduce& allreduce) : node_(node), allreduce_(allreduce) {}
  std::uint32_t size() const override { return allreduce_.size(); }
  void allreduce(std::span<float> values, TimePoint deadline) override {
    allreduce_.run(values, deadline, [this] { node_.check(); });
  }

 private:
  Node& node_;
  MpiAllreduce& allreduce_;
};

Node::Node(Engine& engine, Options options)
    : engine_(engine),
      token_(std::move(options.token)),
      is_coordinator_(options.is_coordinator),
      mailbox_(unclaimed_limit, [&engine](NodeId) { engine.wake(); }),
      memory_(options.shares_memory ? make_memory([this](NodeId peer) { check(peer); }) : nullptr),
      allreduce_(options.allreduce != nullptr
                     ? std::make_unique<NodeAllreduce>(*this, *options.allreduce)
                     : nullptr) {
  const auto lock = engine_.acquire_lock();
  site_.rank = engine_.calls().rank();
  if (is_coordinator_) {
    be_ready();
  }
  site_.slot = engine_.add(*this, is_coordinator_);
}

Node::~Node() {
  close(steady_now());
  await_release();
  const auto lock = engine_.acquire_lock();
  engine_.remove(site_.slot);
}

void Node::join(std::chrono::milliseconds timeout) {
  auto lock = engine_.acquire_lock();
  say_hello(add(coordinator_node, coordinator_site));
  engine_.wake();
  if (!wait(lock, steady_now() + timeout, [this] { return ready_ || turned_away_ || stopped_; })) {
    throw TimedOut(fmt::format("node 0 did not answer on rank 0 within {} s",
                               to_seconds(std::chrono::duration_cast<Duration>(timeout))));
  }
  if (const std::exception_ptr why = turned_away_ ? turned_away_ : stopped_) {
    std::rethrow_exception(why);
  }
}

void Node::introduce(NodeId peer, const std::string& address) {
  const Site there = parse_site(address);
  const auto lock = engine_.acquire_lock();
  if (stopped_) {
    std::rethrow_exception(stopped_);
  }
  if (peer == self_) {
    return;
  }
  if (const auto known = streams_.find(peer); known != streams_.end()) {
    if (known->second->there() != there) {
      throw InternalError(fmt::format("node {} is at {}, but was introduced at {}", peer.value,
                                      to_string(known->second->there()), address));
    }
    return;
  }
  Stream& added = add(peer, there);
  if (peer < self_) {
    say_hello(added);
    engine_.wake();
  }
}

std::unique_ptr<Transfer> Node::start_send(NodeId to, Tag tag, std::span<const std::byte> payload) {
  auto sending = std::make_unique<Sending>(
      *this, to, QueuedMessage{.tag = tag, .owned = {}, .payload = payload});
  if (payload.size() > small_limit) {
    engine_.wake();
  }
  return sending;
}

void Node::post(NodeId to, Tag tag, std::vector<std::byte> payload) {
  const std::span<const std::byte> view = payload;
  const auto lock = engine_.acquire_lock();
  find(to).sender().hand_over({.tag = tag, .owned = std::move(payload), .payload = view});
}

std::unique_ptr<Transfer> Node::start_receive(NodeId from, Tag tag, std::span<std::byte> into) {
  {
    const auto lock = engine_.acquire_lock();
    find(from);
  }
  auto receiving = mailbox_.start_receive(from, tag, into);
  engine_.wake();
  return receiving;
}

Message Node::receive(std::optional<NodeId> from, Tag tag, TimePoint deadline) {
  if (from) {
    const auto lock = engine_.acquire_lock();
    find(*from);
  }
  engine_.wake();
  return mailbox_.receive(from, tag, deadline);
}

void Node::give_up(NodeId peer) {
  const auto lock = engine_.acquire_lock();
  find(peer).lose("this node has given it up");
  engine_.wake();
}

Traffic Node::traffic() const {
  const auto lock = engine_.acquire_lock();
  Traffic sum;
  for (const auto& [peer, stream] : streams_) {
    const Traffic part = stream->sender().traffic();
    sum.bytes_sent += part.bytes_sent;
    sum.messages_sent += part.messages_sent;
  }
  sum.bytes_zero_copy = memory_ ? memory_->bytes_zero_copy() : 0;
  return sum;
}

Traffic Node::traffic_to(NodeId peer) const {
  const auto lock = engine_.acquire_lock();
  const auto found = streams_.find(peer);
  return found == streams_.end() ? Traffic{} : found->second->sender().traffic();
}

void Node::cancel(std::exception_ptr why) noexcept {
  const auto lock = engine_.acquire_lock();
  stop(why);
  for (const auto& [peer, stream] : streams_) {
    if (stream->sender().cancel(why)) {
      stream->lose(why);
    }
  }
  engine_.wake();
}

void Node::close(TimePoint deadline) noexcept {
  auto lock = engine_.acquire_lock();
  stop(std::make_exception_ptr(Cancelled("this node's transport was closed")));
  engine_.wake();
  const auto all_has_left = [this] {
    return std::all_of(streams_.begin(), streams_.end(),
                       [](const auto& entry) { return entry.second->sender().is_empty(); });
  };
  wait(lock, deadline, all_has_left);
  for (const auto& [peer, stream] : streams_) {
    stream->finish();
  }
  wait(lock, deadline, [this] { return all(&Stream::has_ended); });
  for (const auto& [peer, stream] : streams_) {
    stream->lose("this node's transport was closed");
  }
  closed_ = true;
}

/// MPI writes to and reads from memory of this node until then. A peer that lives says goodbye, by which it is known
/// what is still to come from it.
void Node::await_release() noexcept {
  auto lock = engine_.acquire_lock();
  wait(lock, no_deadline, [this] { return engine_.has_failed() || all(&Stream::is_released); });
  wait(lock, steady_now() + farewell, [this] { return all(&Stream::has_ended); });
}

/// Nothing begins any more; what is waited for ends with `why`. What was sent still leaves.
void Node::stop(const std::exception_ptr& why) {
  if (!stopped_) {
    stopped_ = why;
  }
  mailbox_.cancel(why);
  for (const auto& [peer, stream] : streams_) {
    stream->sender().refuse(why);
  }
}

/// False at the deadline.
bool Node::await_handle(SendHandle& handle, TimePoint deadline) {
  auto lock = engine_.acquire_lock();
  return wait(lock, deadline, [&] { return handle.done; });
}

template <class Done>
bool Node::wait(Engine::Lock& lock, TimePoint deadline, const Done& done) const {
  return engine_.changed().wait_until(lock, to_steady(deadline), done);
}

bool Node::all(bool (Stream::*is_so)() const) const {
  return std::all_of(streams_.begin(), streams_.end(),
                     [&](const auto& entry) { return ((*entry.second).*is_so)(); });
}

void Node::check() const {
  if (stopped_) {
    std::rethrow_exception(stopped_);
  }
}

/// Throws where this node is stopped or the peer is lost.
void Node::check(NodeId peer) const {
  const auto lock = engine_.acquire_lock();
  check();
  const auto found = streams_.find(peer);
  if (found != streams_.end() && found->second->lost_by()) {
    std::rethrow_exception(found->second->lost_by());
  }
}

Stream& Node::find(NodeId peer) const {
  const auto found = streams_.find(peer);
  if (found == streams_.end()) {
    throw InternalError(
        fmt::format("node {} was never introduced and never made contact", peer.value));
  }
  return *found->second;
}

Stream& Node::add(NodeId peer, const Site& there) {
  Stream& added =
      *(streams_[peer] = std::make_unique<Stream>(
            engine_, mailbox_, Stream::Ends{.peer = peer, .here = site_, .there = there}));
  by_site_[there] = &added;
  if (stopped_) {
    added.sender().refuse(stopped_);
  }
  return added;
}

}  // namespace syncopate::mpi
