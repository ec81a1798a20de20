#include "transport/mpi/mpi_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/errors.hpp"
#include "transport/steady_time.hpp"

namespace syncopate::mpi {
namespace {

/// Bytes that a peer may have sent and no receive has taken.
constexpr std::size_t unclaimed_limit = std::size_t{1} << 28;
/// Far longer than a live peer needs to say goodbye.
constexpr Duration goodbye_limit = std::chrono::seconds(5);

/// MPI counts in int.
constexpr std::size_t most_values = std::size_t{1} << 30;

}  // namespace

void MpiAllreduce::run(std::span<float> values, TimePoint deadline,
                       const std::function<void()>& check) {
  Calls::Request all_are_here;
  {
    const auto lock = engine_.acquire_lock();
    if (!all_are_here_) {
      all_are_here_ = engine_.calls().barrier(Calls::Ranks::reducing);
    }
    all_are_here = *all_are_here_;
  }
  engine_.await(all_are_here, deadline, check);
  all_are_here_.reset();
  while (!values.empty()) {
    const auto part = values.first(std::min(values.size(), most_values));
    engine_.calls().allreduce(part);
    values = values.subspan(part.size());
  }
}

/// A send from a borrowed buffer.
class Sending final : public Transfer {
 public:
  Sending(Node& node, NodeId to, QueuedMessage message)
      : node_(node), to_(to), handle_(message.handle = std::make_shared<SendHandle>()) {
    const auto lock = node.engine_.acquire_lock();
    node.peers_.find(to).sender().enqueue(std::move(message));
  }
  ~Sending() override { node_.await_handle(*handle_, no_deadline); }
  Sending(const Sending&) = delete;
  Sending& operator=(const Sending&) = delete;

  void wait(TimePoint deadline) override {
    if (!node_.await_handle(*handle_, deadline)) {
      const auto lock = node_.engine_.acquire_lock();
      node_.peers_.find(to_).lose("a send to it timed out, which cut the stream");
      throw PeerTimedOut(to_, "a message was not taken before its deadline");
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
    allreduce_.run(values, deadline, [this] { node_.peers_.check(); });
  }

 private:
  Node& node_;
  MpiAllreduce& allreduce_;
};

Node::Node(Engine& engine, Options options)
    : engine_(engine),
      mailbox_(unclaimed_limit, [&engine](NodeId) { engine.wake(); }),
      peers_(engine, mailbox_,
             {.token = std::move(options.token),
              .shares_memory = options.shares_memory,
              .is_coordinator = options.is_coordinator}),
      allreduce_(options.allreduce != nullptr
                     ? std::make_unique<NodeAllreduce>(*this, *options.allreduce)
                     : nullptr) {}

Node::~Node() {
  close(steady_now());
  await_release();
}

void Node::join(std::chrono::milliseconds timeout) {
  auto lock = engine_.acquire_lock();
  peers_.ask_to_join();
  if (!wait(lock, steady_now() + timeout, [this] { return peers_.has_answer(); })) {
    throw TimedOut(fmt::format("node 0 did not answer on rank 0 within {} s",
                               to_seconds(std::chrono::duration_cast<Duration>(timeout))));
  }
  peers_.check_joined();
}

void Node::introduce(NodeId peer, const std::string& address) {
  const auto lock = engine_.acquire_lock();
  peers_.introduce(peer, address);
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
  peers_.find(to).sender().enqueue({.tag = tag, .owned = std::move(payload), .payload = view});
}

std::unique_ptr<Transfer> Node::start_receive(NodeId from, Tag tag, std::span<std::byte> into) {
  {
    const auto lock = engine_.acquire_lock();
    peers_.find(from);
  }
  auto receiving = mailbox_.start_receive(from, tag, into);
  engine_.wake();
  return receiving;
}

std::optional<Message> Node::try_receive(std::optional<NodeId> from, Tag tag, TimePoint deadline) {
  if (from) {
    const auto lock = engine_.acquire_lock();
    peers_.find(*from);
  }
  engine_.wake();
  return mailbox_.try_receive(from, tag, deadline);
}

void Node::give_up(NodeId peer) {
  const auto lock = engine_.acquire_lock();
  peers_.find(peer).lose("this node has given it up");
  engine_.wake();
}

Traffic Node::traffic() const {
  const auto lock = engine_.acquire_lock();
  Traffic total;
  for (const auto& [peer, stream] : peers_.all()) {
    const Traffic part = stream->sender().traffic();
    total.bytes_sent += part.bytes_sent;
    total.messages_sent += part.messages_sent;
  }
  const shm::HostMemory* const memory = peers_.memory();
  total.bytes_zero_copy = memory != nullptr ? memory->bytes_zero_copy() : 0;
  return total;
}

Traffic Node::traffic_to(NodeId peer) const {
  const auto lock = engine_.acquire_lock();
  const Stream* const known = peers_.find_known(peer);
  return known == nullptr ? Traffic{} : known->sender().traffic();
}

std::string Node::path_to(NodeId peer) const {
  const auto lock = engine_.acquire_lock();
  return peers_.find_known(peer) == nullptr ? "" : "MPI";
}

void Node::cancel(std::exception_ptr why) noexcept {
  const auto lock = engine_.acquire_lock();
  peers_.stop(why);
  for (const auto& [peer, stream] : peers_.all()) {
    if (stream->sender().cancel(why)) {
      stream->lose(why);
    }
  }
  engine_.wake();
}

void Node::close(TimePoint deadline) noexcept {
  auto lock = engine_.acquire_lock();
  peers_.stop(std::make_exception_ptr(Cancelled("this node's transport was closed")));
  engine_.wake();
  wait(lock, deadline, [this] { return peers_.all_are(&Stream::has_sent_all); });
  for (const auto& [peer, stream] : peers_.all()) {
    stream->finish();
  }
  wait(lock, deadline, [this] { return peers_.all_are(&Stream::has_ended); });
  for (const auto& [peer, stream] : peers_.all()) {
    stream->lose("this node's transport was closed");
  }
  peers_.close();
}

/// Waits until MPI neither writes to nor reads from memory of this node. A live peer says goodbye,
/// and its goodbye lists the messages that are still to come.
void Node::await_release() noexcept {
  auto lock = engine_.acquire_lock();
  wait(lock, no_deadline,
       [this] { return engine_.has_failed() || peers_.all_are(&Stream::is_released); });
  wait(lock, steady_now() + goodbye_limit, [this] { return peers_.all_are(&Stream::has_ended); });
}

/// Returns false at the deadline.
bool Node::await_handle(SendHandle& handle, TimePoint deadline) {
  auto lock = engine_.acquire_lock();
  return wait(lock, deadline, [&] { return handle.done; });
}

template <class Done>
bool Node::wait(Engine::Lock& lock, TimePoint deadline, const Done& done) const {
  return engine_.changed().wait_until(lock, to_steady(deadline), done);
}

}  // namespace syncopate::mpi
