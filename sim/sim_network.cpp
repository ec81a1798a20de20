#include "sim/sim_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/errors.hpp"

namespace syncopate::sim {
namespace {

/// Puts `value` into a free slot or a new one; returns the index of the slot.
template <class Value>
std::size_t put(std::deque<Value>& values, std::vector<std::size_t>& free, Value value) {
  if (free.empty()) {
    values.push_back(std::move(value));
    return values.size() - 1;
  }
  const std::size_t index = free.back();
  free.pop_back();
  values[index] = std::move(value);
  return index;
}

std::size_t bytes_on_link(const Departure& departure) {
  return header_bytes + (departure.buffer != nullptr ? departure.buffer->payload.size()
                                                     : departure.payload.size());
}

std::span<const std::byte> payload_of(const Departure& departure) {
  return departure.buffer != nullptr ? departure.buffer->payload : std::span(departure.payload);
}

}  // namespace

void Network::send(Departure departure) {
  const NodeId from = departure.from;
  const NodeId to = departure.to;
  trace_.message(scheduler_.now(), {from, "send", to, departure.tag, payload_of(departure)});
  const Passage passage = times_.depart(scheduler_.now(), from, to, bytes_on_link(departure));
  Stream& way = stream(from, to);
  const bool borrowed = departure.buffer != nullptr;
  const std::size_t index =
      put(packets_, free_packets_, Packet{std::move(departure), passage, way.cut});
  if (!way.cut) {
    ++way.under_way;
  }
  if (borrowed) {
    schedule(passage.sent, Stage::sent, index);
  }
  schedule(passage.first_byte, Stage::first_byte, index);
}

void Network::set_link(NodeId one, NodeId other, const LinkProfile& profile) {
  times_.set_link(one, other, profile);
  times_.set_link(other, one, profile);
}

bool Network::is_open(NodeId node) const {
  return open_endpoint(node) != nullptr;
}

void Network::cut(NodeId from, NodeId to, const std::string& why) {
  drop_unsent(from, to);
  announce({from, to, std::make_shared<const std::string>(why)});
}

void Network::disconnect(NodeId node, const std::string& why) {
  const auto reason = std::make_shared<const std::string>(why);
  const Endpoint& self = *endpoints_.at(node.value);
  drop_unsent(node, std::nullopt);
  for (std::uint32_t other = 0; other < endpoints_.size(); ++other) {
    const NodeId to{other};
    const Endpoint* const endpoint = open_endpoint(to);
    if (to != node && endpoint != nullptr && (endpoint->knows(node) || self.knows(to))) {
      announce({node, to, reason});
    }
  }
}

void Network::end_sends(NodeId from, std::optional<NodeId> to, const std::exception_ptr& error) {
  std::set<NodeId> broken;
  for (Packet& packet : packets_) {
    Departure& departure = packet.departure;
    if (departure.buffer != nullptr && departure.from == from &&
        departure.to == to.value_or(departure.to)) {
      std::exchange(departure.buffer, nullptr)->completion.complete(error);
      drop(packet);
      broken.insert(departure.to);
    }
  }
  for (const NodeId peer : broken) {
    cut(from, peer,
        fmt::format("lost node {}, which broke off in the middle of a message", from.value));
  }
}

void Network::fire(std::uint64_t argument) {
  const std::size_t index = argument >> 2;
  switch (static_cast<Stage>(argument & 3)) {
    case Stage::sent: return_buffer(packets_[index]); break;
    case Stage::first_byte: enter(index); break;
    case Stage::arrived: arrive(index); break;
    case Stage::ending: begin_end(index); break;
  }
}

void Network::schedule(TimePoint when, Stage stage, std::size_t index) {
  scheduler_.schedule(when, *this, (index << 2) | static_cast<std::uint64_t>(stage));
}

/// Called when the sender's network card has read the payload: returns the buffer to the sender.
void Network::return_buffer(Packet& packet) {
  Departure& departure = packet.departure;
  if (departure.buffer == nullptr) {
    return;
  }
  BorrowedBuffer& buffer = *std::exchange(departure.buffer, nullptr);
  departure.payload.assign(buffer.payload.begin(), buffer.payload.end());
  if (fingerprint(buffer.payload) == buffer.fingerprint) {
    buffer.completion.complete();
    return;
  }
  buffer.completion.complete(std::make_exception_ptr(InternalError(fmt::format(
      "node {} changed {} bytes that a send to node {} under tag {} still borrowed",
      departure.from.value, buffer.payload.size(), departure.to.value, departure.tag.value))));
}

void Network::enter(std::size_t index) {
  const Packet& packet = packets_[index];
  const NodeId to = packet.departure.to;
  // A dropped message costs its receiver nothing, but its slot is in use until its send has ended.
  const TimePoint arrived =
      packet.dropped ? packet.passage.last_byte
                     : times_.arrive(packet.passage, to, bytes_on_link(packet.departure));
  schedule(arrived, Stage::arrived, index);
}

void Network::arrive(std::size_t index) {
  Packet& packet = packets_[index];
  const bool dropped = packet.dropped;
  const NodeId from = packet.departure.from;
  const NodeId to = packet.departure.to;
  Departure departure = std::move(packet.departure);
  packet.dropped = true;
  free_packets_.push_back(index);
  if (dropped) {
    return;
  }
  deliver(std::move(departure));
  if (--stream(from, to).under_way == 0 && !held_endings_.empty()) {
    if (const auto held = held_endings_.extract({from, to})) {
      end(held.mapped());
    }
  }
}

void Network::deliver(Departure departure) {
  Endpoint* const endpoint = open_endpoint(departure.to);
  const bool wanted = endpoint != nullptr && endpoint->accepts(departure.from);
  trace_.message(scheduler_.now(), {departure.to, wanted ? "deliver" : "refuse", departure.from,
                                    departure.tag, departure.payload});
  if (wanted) {
    endpoint->deliver({departure.from, departure.tag, std::move(departure.payload)});
  }
}

/// Called when the end of a stream has arrived, possibly before messages that were sent before it.
void Network::begin_end(std::size_t index) {
  Ending ending = std::move(endings_[index]);
  free_endings_.push_back(index);
  if (stream(ending.from, ending.to).under_way == 0) {
    end(ending);
  } else {
    held_endings_.emplace(std::pair(ending.from, ending.to), std::move(ending));
  }
}

void Network::end(const Ending& ending) {
  Endpoint* const endpoint = open_endpoint(ending.to);
  if (endpoint != nullptr && endpoint->accepts(ending.from)) {
    trace_.note(scheduler_.now(), ending.to,
                fmt::format("lost peer={} ({})", ending.from.value, *ending.why));
    endpoint->lose(ending.from, *ending.why);
  }
}

void Network::announce(const Ending& ending) {
  if (!std::exchange(stream(ending.from, ending.to).cut, true)) {
    schedule(scheduler_.now() + times_.latency(ending.from, ending.to), Stage::ending,
             put(endings_, free_endings_, ending));
  }
}

void Network::drop(Packet& packet) {
  if (!std::exchange(packet.dropped, true)) {
    --stream(packet.departure.from, packet.departure.to).under_way;
  }
}

/// Drops the messages that the network card of `from` has not sent.
void Network::drop_unsent(NodeId from, std::optional<NodeId> to) {
  for (Packet& packet : packets_) {
    const Departure& departure = packet.departure;
    if (!packet.dropped && departure.from == from && departure.to == to.value_or(departure.to) &&
        packet.passage.sent > scheduler_.now()) {
      drop(packet);
    }
  }
}

Network::Stream& Network::stream(NodeId from, NodeId to) {
  return at_node(at_node(streams_, from, {}), to, {});
}

Endpoint* Network::open_endpoint(NodeId node) const {
  if (node.value >= endpoints_.size() || !endpoints_[node.value]->is_open()) {
    return nullptr;
  }
  return endpoints_[node.value];
}

}  // namespace syncopate::sim
