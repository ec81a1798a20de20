#include "sim/sim_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/errors.hpp"

namespace syncopate::sim {
namespace {

/// The wait of `close`.
class Flush : public Waiting {
 public:
  std::string describe() const override { return "its messages to be sent"; }
};

}  // namespace

std::string address_of(NodeId node) {
  return fmt::format("sim:{}", node.value);
}

class SimTransport::StartedSend final : public Transfer, private Waiting {
 public:
  StartedSend(SimTransport& transport, NodeId to, Tag tag, std::span<const std::byte> payload)
      : transport_(transport), to_(to), tag_(tag), buffer_{payload, fingerprint(payload)} {
    transport_.network_.send({transport_.self(), to, tag, {}, &buffer_});
  }
  ~StartedSend() override { buffer_.completion.await_quietly(transport_.node_, *this); }
  StartedSend(const StartedSend&) = delete;
  StartedSend& operator=(const StartedSend&) = delete;

  void wait(TimePoint deadline) override {
    if (!buffer_.completion.await(transport_.node_, *this, deadline)) {
      give_up();
    }
    buffer_.completion.check();
  }

 private:
  std::string describe() const override {
    return fmt::format("its network card to send {} bytes to node {} under tag {}",
                       buffer_.payload.size(), to_.value, tag_.value);
  }

  /// Cuts the stream, since no other message can follow half a message.
  [[noreturn]] void give_up() {
    const std::string what =
        fmt::format("{} gave up sending {} bytes to node {} under tag {} at its deadline",
                    transport_.node_.title(), buffer_.payload.size(), to_.value, tag_.value);
    transport_.cut(to_, what);
    throw PeerTimedOut(to_, "a message was not taken before its deadline");
  }

  SimTransport& transport_;
  NodeId to_;
  Tag tag_;
  BorrowedBuffer buffer_;
};

class SimTransport::StartedReceive final : public Transfer, private Waiting {
 public:
  StartedReceive(SimTransport& transport, Receive receive)
      : transport_(transport), receive_(std::move(receive)) {
    transport_.inbox_.post(receive_);
  }
  ~StartedReceive() override {
    if (!receive_.completion.done()) {
      transport_.inbox_.withdraw(receive_);
    }
  }
  StartedReceive(const StartedReceive&) = delete;
  StartedReceive& operator=(const StartedReceive&) = delete;

  void wait(TimePoint deadline) override {
    if (!ends_by(deadline)) {
      throw_no_message(receive_.from);
    }
  }

  std::optional<Message> take_by(TimePoint deadline) {
    return ends_by(deadline) ? std::optional(std::move(receive_.message)) : std::nullopt;
  }

 private:
  std::string describe() const override {
    const std::string sender =
        receive_.from ? fmt::format("node {}", receive_.from->value) : "anyone";
    return fmt::format("a message of {} under tag {}", sender, receive_.tag.value);
  }

  bool ends_by(TimePoint deadline) {
    if (!receive_.completion.await(transport_.node_, *this, deadline)) {
      return false;
    }
    receive_.completion.check();
    return true;
  }

  SimTransport& transport_;
  Receive receive_;
};

SimTransport::SimTransport(Node& node, Network& network, const std::shared_ptr<SimHost>& host)
    : node_(node), network_(network) {
  network_.attach(*this);
  if (host) {
    memory_.emplace(node, host, [this](NodeId peer) { check_presence(peer); });
  }
}

void SimTransport::introduce(NodeId peer, const std::string& address) {
  check();
  if (address != address_of(peer)) {
    throw InternalError(fmt::format("{}: node {} is reached at {}, not at '{}'", node_.title(),
                                    peer.value, address_of(peer), address));
  }
  if (peer == self() || relation(peer) != Relation::unknown) {
    return;
  }
  relate(peer, Relation::known);
  if (!network_.is_open(peer)) {
    network_.cut(peer, self(), fmt::format("lost node {}, which nobody can reach", peer.value));
  }
}

std::unique_ptr<Transfer> SimTransport::start_send(NodeId to, Tag tag,
                                                   std::span<const std::byte> payload) {
  check_peer(to);
  check_presence(to);
  count(to, payload.size());
  return std::make_unique<StartedSend>(*this, to, tag, payload);
}

std::unique_ptr<Transfer> SimTransport::start_receive(NodeId from, Tag tag,
                                                      std::span<std::byte> into) {
  check_peer(from);
  return std::make_unique<StartedReceive>(*this, Receive{from, tag, into});
}

void SimTransport::post(NodeId to, Tag tag, std::vector<std::byte> payload) {
  check_peer(to);
  if (relation(to) != Relation::lost) {
    count(to, payload.size());
    network_.send({self(), to, tag, std::move(payload)});
  }
}

std::optional<Message> SimTransport::try_receive(std::optional<NodeId> from, Tag tag,
                                                 TimePoint deadline) {
  from ? check_peer(*from) : check();
  return StartedReceive(*this, Receive{from, tag, std::nullopt}).take_by(deadline);
}

void SimTransport::give_up(NodeId peer) {
  check_peer(peer);
  if (relation(peer) == Relation::known) {
    cut(peer, "it was given up");
  }
}

void SimTransport::cancel(std::exception_ptr why) noexcept {
  if (!ended_by_) {
    ended_by_ = std::move(why);
    inbox_.cancel(ended_by_);
    network_.end_sends(self(), std::nullopt, ended_by_);
  }
}

void SimTransport::close(TimePoint deadline) noexcept {
  const auto flushed = [&] { return std::min(deadline, network_.sent_by(self())); };
  while (open_ && node_.now() < flushed()) {
    node_.block_quietly(Flush{}, flushed());
  }
  shut(fmt::format("lost {}, which has closed its connections", node_.title()));
}

void SimTransport::shut(const std::string& why) {
  if (std::exchange(open_, false)) {
    cancel(std::make_exception_ptr(Cancelled(node_.title() + " has closed its transport")));
    network_.disconnect(self(), why);
  }
}

void SimTransport::cut(NodeId peer, const std::string& why) {
  network_.cut(self(), peer, fmt::format("lost {}: {}", node_.title(), why));
  lose(peer, fmt::format("lost node {}: {}", peer.value, why));
}

void SimTransport::deliver(Message message) {
  if (relation(message.from) == Relation::unknown) {
    relate(message.from, Relation::known);
  }
  if (!ended_by_) {
    inbox_.arrive(std::move(message));
  }
}

void SimTransport::lose(NodeId peer, const std::string& why) {
  if (relation(peer) == Relation::lost) {
    return;
  }
  relate(peer, Relation::lost);
  losses_[peer] = why;
  inbox_.lose(peer, why);
  network_.end_sends(self(), peer, std::make_exception_ptr(PeerLost(peer, why)));
}

SimTransport::Relation SimTransport::relation(NodeId peer) const {
  return peer.value < relations_.size() ? relations_[peer.value] : Relation::unknown;
}

void SimTransport::relate(NodeId peer, Relation relation) {
  if (peer.value >= relations_.size()) {
    relations_.resize(peer.value + 1, Relation::unknown);
  }
  relations_[peer.value] = relation;
}

void SimTransport::check() const {
  node_.check();
  if (ended_by_) {
    std::rethrow_exception(ended_by_);
  }
}

void SimTransport::check_peer(NodeId peer) const {
  check();
  if (relation(peer) == Relation::unknown) {
    throw InternalError(fmt::format("{} was never introduced to node {}, nor heard from it",
                                    node_.title(), peer.value));
  }
}

void SimTransport::check_presence(NodeId peer) const {
  check();
  if (relation(peer) == Relation::lost) {
    throw PeerLost(peer, losses_.at(peer));
  }
}

Traffic SimTransport::traffic() const {
  Traffic traffic = traffic_;
  traffic.bytes_zero_copy = memory_ ? memory_->bytes_zero_copy() : 0;
  return traffic;
}

Traffic SimTransport::traffic_to(NodeId peer) const {
  const auto found = traffic_to_.find(peer);
  return found == traffic_to_.end() ? Traffic{} : found->second;
}

std::string SimTransport::path_to(NodeId peer) const {
  return traffic_to_.contains(peer) ? "simulated" : "";
}

void SimTransport::count(NodeId to, std::size_t bytes) {
  for (Traffic* const traffic : {&traffic_, &traffic_to_[to]}) {
    traffic->bytes_sent += bytes + header_bytes;
    ++traffic->messages_sent;
  }
}

}  // namespace syncopate::sim
