#include "transport/mpi/peer_streams.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"

namespace syncopate::mpi {
namespace {

std::span<const std::byte> payload_of(wire::FrameKind& kind, std::span<const std::byte> frame) {
  if (frame.size() < wire::frame_header_bytes) {
    throw ProtocolError(fmt::format("expected a handshake, found {} bytes", frame.size()));
  }
  const auto header =
      wire::decode_frame_header(frame.first<wire::frame_header_bytes>(), wire::handshake_limit);
  kind = header.kind;
  return frame.subspan(wire::frame_header_bytes);
}

std::unique_ptr<shm::HostMemory> make_memory(shm::HostMemory::Check check) {
  try {
    return std::make_unique<shm::HostMemory>(std::move(check));
  } catch (const DataError& error) {
    log::warn("{}; nodes of this host share no memory", error.what());
    return nullptr;
  }
}

}  // namespace

PeerStreams::PeerStreams(Engine& engine, mail::Mailbox& mailbox, Options options)
    : engine_(engine),
      mailbox_(mailbox),
      token_(std::move(options.token)),
      is_coordinator_(options.is_coordinator),
      memory_(options.shares_memory ? make_memory([this](NodeId peer) { check_peer(peer); })
                                    : nullptr) {
  const auto lock = engine_.acquire_lock();
  site_.rank = engine_.calls().rank();
  if (is_coordinator_) {
    become_ready();
  }
  site_.slot = engine_.add(*this, is_coordinator_);
}

PeerStreams::~PeerStreams() {
  const auto lock = engine_.acquire_lock();
  engine_.remove(site_.slot);
}

void PeerStreams::ask_to_join() {
  say_hello(add(coordinator_node, coordinator_site));
  engine_.wake();
}

void PeerStreams::check_joined() const {
  if (const std::exception_ptr why = refused_ ? refused_ : stopped_) {
    std::rethrow_exception(why);
  }
}

void PeerStreams::introduce(NodeId peer, const std::string& address) {
  const Site there = parse_site(address);
  check();
  if (peer == self_) {
    return;
  }
  if (const Stream* const known = find_known(peer)) {
    if (known->there() != there) {
      throw InternalError(fmt::format("node {} is at {}, but was introduced at {}", peer.value,
                                      to_string(known->there()), address));
    }
    return;
  }
  Stream& added = add(peer, there);
  if (peer < self_) {
    say_hello(added);
    engine_.wake();
  }
}

Stream& PeerStreams::find(NodeId peer) const {
  if (Stream* const found = find_known(peer)) {
    return *found;
  }
  throw InternalError(
      fmt::format("node {} was never introduced and has not said hello", peer.value));
}

Stream* PeerStreams::find_known(NodeId peer) const {
  const auto found = streams_.find(peer);
  return found == streams_.end() ? nullptr : found->second.get();
}

bool PeerStreams::all_are(bool (Stream::*is_so)() const) const {
  return std::all_of(streams_.begin(), streams_.end(),
                     [&](const auto& entry) { return ((*entry.second).*is_so)(); });
}

void PeerStreams::check() const {
  if (stopped_) {
    std::rethrow_exception(stopped_);
  }
}

/// Throws if this node is stopped or the peer is lost. Takes the engine lock.
void PeerStreams::check_peer(NodeId peer) const {
  const auto lock = engine_.acquire_lock();
  check();
  if (const Stream* const known = find_known(peer); known != nullptr && known->lost_by()) {
    std::rethrow_exception(known->lost_by());
  }
}

void PeerStreams::stop(const std::exception_ptr& why) {
  if (!stopped_) {
    stopped_ = why;
  }
  mailbox_.cancel(why);
  for (const auto& [peer, stream] : streams_) {
    stream->sender().refuse(why);
  }
}

Stream& PeerStreams::add(NodeId peer, const Site& there) {
  Stream& added =
      *(streams_[peer] = std::make_unique<Stream>(
            engine_, mailbox_, Stream::Ends{.peer = peer, .here = site_, .there = there}));
  by_site_[there] = &added;
  if (stopped_) {
    added.sender().refuse(stopped_);
  }
  return added;
}

void PeerStreams::arrived(const Site& from, const PacketHead& head,
                          std::span<const std::byte> payload) {
  switch (head.kind) {
    case PacketKind::hello:
      if (ready_) {
        receive_hello(from, payload);
      } else {
        early_.emplace_back(from, std::vector<std::byte>(payload.begin(), payload.end()));
      }
      return;
    case PacketKind::welcome:
    case PacketKind::refused: return receive_answer(from, head, payload);
    default: break;
  }
  if (const auto found = by_site_.find(from); found != by_site_.end()) {
    found->second->arrived(head, payload);
  }
}

bool PeerStreams::work() {
  bool moved = false;
  for (const auto& [peer, stream] : streams_) {
    moved |= stream->work();
  }
  return moved;
}

void PeerStreams::fail(const std::exception_ptr& why) {
  stop(why);
  for (const auto& [peer, stream] : streams_) {
    stream->sender().break_off(why);
  }
  engine_.changed().notify_all();
}

PacketHead PeerStreams::head(PacketKind kind, const Site& to) const {
  return {.kind = kind, .from_slot = site_.slot, .to_slot = to.slot};
}

void PeerStreams::say_hello(Stream& stream) {
  wire::Hello hello;
  hello.set_token(token_);
  hello.set_address(to_string(site_));
  if (ready_) {
    hello.set_node(self_.value);
  }
  if (memory_) {
    *hello.mutable_memory() = shm::announce(memory_->address());
  }
  engine_.send(stream.there(), head(PacketKind::hello, stream.there()), wire::encode_frame(hello));
}

void PeerStreams::receive_hello(const Site& from, std::span<const std::byte> frame) {
  try {
    wire::FrameKind kind{};
    const auto payload = payload_of(kind, frame);
    const wire::Welcome welcome = validate(from, wire::decode_hello(kind, payload));
    engine_.send(from, head(PacketKind::welcome, from), wire::encode_frame(welcome));
    find(NodeId{welcome.you()}).open();
  } catch (const Error& error) {
    log::warn("{} is turned away: {}", to_string(from), error.what());
    wire::Refused refused;
    refused.set_reason(error.what());
    engine_.send(from, head(PacketKind::refused, from), wire::encode_frame(refused));
  }
}

wire::Welcome PeerStreams::validate(const Site& from, const wire::Hello& hello) {
  if (!wire::is_same_secret(hello.token(), token_)) {
    throw ConfigError(
        fmt::format("the job token is wrong: {} belongs to another job, or the token was mistyped",
                    to_string(site_)));
  }
  if (closed_ || stopped_) {
    throw ConfigError(fmt::format("node {} is leaving", self_.value));
  }
  const NodeId caller = number_of(hello);
  const auto known = streams_.find(caller);
  Stream& stream = known == streams_.end() ? add(caller, from) : *known->second;
  if (stream.there() != from || stream.is_open() || stream.lost_by()) {
    throw ConfigError(
        fmt::format("node {} has been connected to node {} before", caller.value, self_.value));
  }
  wire::Welcome welcome;
  welcome.set_node(self_.value);
  welcome.set_you(caller.value);
  if (memory_) {
    *welcome.mutable_memory() = shm::announce(memory_->address());
    if (hello.has_memory()) {
      memory_->introduce(caller, shm::read(hello.memory()));
    }
  }
  return welcome;
}

NodeId PeerStreams::number_of(const wire::Hello& hello) {
  if (!hello.has_node()) {
    if (!is_coordinator_) {
      throw ConfigError(
          fmt::format("{} is node {}: join at node 0", to_string(site_), self_.value));
    }
    return NodeId{++last_number_};
  }
  if (is_coordinator_ || hello.node() <= self_.value) {
    throw ConfigError(fmt::format("expected node {} to say hello to node {}, not the other way",
                                  self_.value, hello.node()));
  }
  return NodeId{hello.node()};
}

void PeerStreams::receive_answer(const Site& from, const PacketHead& head,
                                 std::span<const std::byte> frame) {
  const auto found = by_site_.find(from);
  if (found == by_site_.end() || found->second->lost_by() || closed_) {
    if (head.kind == PacketKind::welcome) {
      engine_.send(from, this->head(PacketKind::goodbye, from));
    }
    return;
  }
  Stream& stream = *found->second;
  try {
    wire::FrameKind kind{};
    const auto payload = payload_of(kind, frame);
    accept_welcome(stream, wire::decode_answer(kind, payload));
  } catch (const Error& error) {
    if (!ready_) {
      refused_ = std::current_exception();
    }
    stream.lose(error.what());
  }
}

void PeerStreams::accept_welcome(Stream& stream, const wire::Welcome& welcome) {
  if (!ready_) {
    self_ = NodeId{welcome.you()};
    if (!welcome.has_memory()) {
      memory_.reset();
    }
    become_ready();
  }
  if (memory_ && welcome.has_memory()) {
    memory_->introduce(stream.peer(), shm::read(welcome.memory()));
  }
  stream.open();
  engine_.changed().notify_all();
}

/// Call this once the node has its number.
void PeerStreams::become_ready() {
  ready_ = true;
  if (memory_) {
    memory_->introduce(self_, memory_->address());
  }
  for (const auto& [from, frame] : std::exchange(early_, {})) {
    receive_hello(from, frame);
  }
}

}  // namespace syncopate::mpi
