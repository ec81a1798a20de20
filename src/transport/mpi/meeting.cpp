// How a node meets its peers and hears of them: the part of Node that the engine calls.

#include <fmt/format.h>

#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "transport/mpi/node.hpp"
#include "transport/shm/announcement.hpp"

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

}  // namespace

void Node::arrived(const Site& from, const PacketHead& head, std::span<const std::byte> payload) {
  switch (head.kind) {
    case PacketKind::hello:
      if (ready_) {
        hear_hello(from, payload);
      } else {
        early_.emplace_back(from, std::vector<std::byte>(payload.begin(), payload.end()));
      }
      return;
    case PacketKind::welcome:
    case PacketKind::refused: return hear_answer(from, head, payload);
    default: break;
  }
  if (const auto found = by_site_.find(from); found != by_site_.end()) {
    found->second->arrived(head, payload);
  }
}

bool Node::work() {
  bool moved = false;
  for (const auto& [peer, stream] : streams_) {
    moved |= stream->work();
  }
  return moved;
}

void Node::fail(const std::exception_ptr& why) {
  stop(why);
  for (const auto& [peer, stream] : streams_) {
    stream->sender().break_off(why);
  }
  engine_.changed().notify_all();
}

PacketHead Node::head(PacketKind kind, const Site& to) const {
  return {.kind = kind, .from_slot = site_.slot, .to_slot = to.slot};
}

void Node::say_hello(Stream& stream) {
  wire::Hello hello;
  hello.set_token(token_);
  hello.set_address(address());
  if (ready_) {
    hello.set_node(self_.value);
  }
  if (memory_) {
    *hello.mutable_memory() = shm::announce(memory_->address());
  }
  engine_.send(stream.there(), head(PacketKind::hello, stream.there()), wire::encode_frame(hello));
}

void Node::hear_hello(const Site& from, std::span<const std::byte> frame) {
  try {
    wire::FrameKind kind{};
    const auto payload = payload_of(kind, frame);
    const wire::Welcome welcome = judge(from, wire::decode_hello(kind, payload));
    engine_.send(from, head(PacketKind::welcome, from), wire::encode_frame(welcome));
    find(NodeId{welcome.you()}).open();
  } catch (const Error& error) {
    log::warn("{} is turned away: {}", to_string(from), error.what());
    wire::Refused refused;
    refused.set_reason(error.what());
    engine_.send(from, head(PacketKind::refused, from), wire::encode_frame(refused));
  }
}

wire::Welcome Node::judge(const Site& from, const wire::Hello& hello) {
  if (!wire::is_same_secret(hello.token(), token_)) {
    throw ConfigError(fmt::format(
        "the job token is wrong: {} belongs to another job, or the token was mistyped", address()));
  }
  if (closed_ || stopped_) {
    throw ConfigError(fmt::format("node {} is leaving", self_.value));
  }
  const NodeId caller = number_of(hello);
  const auto known = streams_.find(caller);
  Stream& stream = known == streams_.end() ? add(caller, from) : *known->second;
  if (stream.there() != from || stream.is_in_contact() || stream.lost_by()) {
    throw ConfigError(
        fmt::format("node {} has been in contact with node {} before", caller.value, self_.value));
  }
  wire::Welcome welcome;
  welcome.set_node(self_.value);
  welcome.set_you(caller.value);
  if (memory_) {
    *welcome.mutable_memory() = shm::announce(memory_->address());
    if (hello.has_memory()) {
      share_memory(caller, hello.memory());
    }
  }
  return welcome;
}

NodeId Node::number_of(const wire::Hello& hello) {
  if (!hello.has_node()) {
    if (!is_coordinator_) {
      throw ConfigError(fmt::format("{} is node {}: join at node 0", address(), self_.value));
    }
    return NodeId{++newcomers_};
  }
  if (is_coordinator_ || hello.node() <= self_.value) {
    throw ConfigError(fmt::format("expected node {} to say hello to node {}, not the other way",
                                  self_.value, hello.node()));
  }
  return NodeId{hello.node()};
}

void Node::hear_answer(const Site& from, const PacketHead& head, std::span<const std::byte> frame) {
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
    be_welcome(stream, wire::decode_answer(kind, payload));
  } catch (const Error& error) {
    if (!ready_) {
      turned_away_ = std::current_exception();
    }
    stream.lose(error.what());
  }
}

void Node::be_welcome(Stream& stream, const wire::Welcome& welcome) {
  if (!ready_) {
    self_ = NodeId{welcome.you()};
    if (!welcome.has_memory()) {
      memory_.reset();
    }
    be_ready();
  }
  if (memory_ && welcome.has_memory()) {
    share_memory(stream.peer(), welcome.memory());
  }
  stream.open();
  engine_.changed().notify_all();
}

void Node::be_ready() {
  ready_ = true;
  if (memory_) {
    memory_->introduce(self_, memory_->address());
  }
  for (const auto& [from, frame] : std::exchange(early_, {})) {
    hear_hello(from, frame);
  }
}

void Node::share_memory(NodeId peer, const wire::SharedSegment& segment) {
  memory_->introduce(peer, shm::read(segment));
}

}  // namespace syncopate::mpi
