#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/ids.hpp"
#include "wire/control.pb.h"

namespace syncopate {

/// "worker 2", "server 0", "the evaluator". Errors: ProtocolError, for an unknown role.
std::string slot_name(wire::Role role, std::uint32_t index);

/// The places of a job, so many of each role, and who holds them: a pure state machine.
///
/// Invariant: a place is held by one node at most, and a node holds one place at most.
class JobSlots {
 public:
  struct Options {
    std::uint32_t workers = 1;
    std::uint32_t servers = 0;
    std::uint32_t evaluators = 1;
  };

  /// What a node asks for: a place by its index, or the next free one of the role.
  struct SlotRequest {
    wire::Role role = wire::ROLE_UNKNOWN;
    std::optional<std::uint32_t> index;
    std::string host;
    std::uint32_t pid = 0;

    /// "worker 2 (pid 4711 on c3)", or "another worker (pid 4711 on c3)".
    std::string describe() const;
  };

  explicit JobSlots(Options options) : options_(options) {}

  /// Why `node` cannot have what it asks for, or empty. What it holds already, it may ask for again.
  /// Errors: ProtocolError, for an unknown role.
  std::optional<std::string> objection_to(NodeId node, const SlotRequest& request) const;
  /// Gives a place, to which there was no objection, in exchange for any that the node holds.
  std::uint32_t take(NodeId node, const SlotRequest& request);
  /// The node needs its place no more.
  void give_back(NodeId node) { holders_.erase(node); }

  /// "worker 2 (pid 4711 on c3)", or empty for a node without a place.
  std::string holder_name(NodeId node) const;

  /// The node has joined the job in its place.
  void fill(NodeId node) { holders_.at(node).joined = true; }
  bool all_filled() const;
  /// Those who have not joined: "worker 1, the evaluator".
  std::string absent() const;

 private:
  struct Holder {
    SlotRequest place;  ///< with its index
    bool joined = false;
  };

  std::uint32_t room_for(wire::Role role) const;
  const Holder* holder_of(wire::Role role, std::uint32_t index) const;
  /// The place that the node holds, else the first that nobody does; at most the room.
  std::uint32_t next_free(NodeId node, wire::Role role) const;

  Options options_;
  std::map<NodeId, Holder> holders_;
};

}  // namespace syncopate
