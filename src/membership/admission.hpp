#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/ids.hpp"
#include "runtime/job_view.hpp"
#include "wire/control.pb.h"

namespace syncopate {

/// "worker 2", "server 0", "the evaluator". Errors: ProtocolError, for an unknown role.
std::string slot_name(wire::Role role, std::uint32_t index);

/// The member that a node becomes when it joins. Errors: those of `slot_name`.
Member member_of(NodeId node, const wire::Join& join);

/// The slots of a job, a number of each role, and the nodes that hold them: a pure state machine.
///
/// Invariant: at most one node holds a slot, and a node holds at most one slot.
class JobSlots {
 public:
  struct Options {
    std::uint32_t workers = 1;
    std::uint32_t servers = 0;
    std::uint32_t evaluators = 1;
  };

  /// A node's request: a slot by its index, or the next free one of the role.
  struct SlotRequest {
    wire::Role role = wire::ROLE_UNKNOWN;
    std::optional<std::uint32_t> index;
    std::string host;
    std::uint32_t pid = 0;

    /// "worker 2 (pid 4711 on c3)", or "another worker (pid 4711 on c3)".
    std::string describe() const;
  };

  explicit JobSlots(Options options) : options_(options) {}

  /// Returns why `node` cannot have the slot, or nothing. A node may request the slot that it
  /// holds.
  /// Errors: ProtocolError, for an unknown role.
  std::optional<std::string> objection_to(NodeId node, const SlotRequest& request) const;
  /// Gives the node a slot to which there was no objection, and frees the slot that it held.
  std::uint32_t take(NodeId node, const SlotRequest& request);
  /// Frees the slot of the node, if it holds one.
  void give_back(NodeId node) { holders_.erase(node); }

  /// "worker 2 (pid 4711 on c3)", or empty for a node without a slot.
  std::string holder_name(NodeId node) const;

  /// Records that the node has joined the job in its slot.
  void fill(NodeId node) { holders_.at(node).joined = true; }
  bool all_filled() const;
  /// The slots whose nodes have not joined: "worker 1, the evaluator"; if there are many, the first
  /// by name, and the number of the others.
  std::string absent() const;
  /// True if the node holds a slot of the role, or may have one.
  bool has_room_for(NodeId node, wire::Role role) const {
    return next_free(node, role) < slots_of(role);
  }

 private:
  struct Holder {
    SlotRequest slot;  ///< with its index
    bool joined = false;
  };

  std::uint32_t slots_of(wire::Role role) const;
  const Holder* holder_of(wire::Role role, std::uint32_t index) const;
  /// The slot that the node holds, else the first free one; at most the number of slots.
  std::uint32_t next_free(NodeId node, wire::Role role) const;

  Options options_;
  std::map<NodeId, Holder> holders_;
};

/// Decides which nodes join a job, and in which slots: a pure state machine.
///
/// A node may enquire before it joins, and the admission then keeps a slot for it. The joins of all
/// nodes must bring the same agreement. Once the job has started, a node joins only in the slot of
/// a member that was lost, until training ends.
class Admission {
 public:
  struct Options {
    JobSlots::Options slots{};
    std::string agreement{};  ///< empty: that of the first node that joins
  };

  struct Answer {
    std::uint32_t index = 0;               ///< of the node's slot
    std::optional<std::string> refusal{};  ///< "worker 2 (pid 4711 on c3) cannot join: …"
  };

  explicit Admission(Options options)
      : agreement_(std::move(options.agreement)), slots_(options.slots) {}

  /// A node requests a slot, or asks for none (`ROLE_UNKNOWN`).
  /// Errors: ProtocolError if this build does not know the role.
  Answer enquired(NodeId node, const wire::Enquire& enquiry);
  /// Errors: as `enquired`.
  Answer joined(NodeId node, const wire::Join& join);
  /// The node may not join: frees the slot that was kept for it.
  void refuse(NodeId node);
  bool was_refused(NodeId node) const { return refused_.contains(node); }
  /// The connection to the node is lost: frees the slot that was kept for it.
  void lost(NodeId node);
  /// The job starts.
  void close() { closed_ = true; }
  /// The job has lost the member: another node may take its slot.
  void vacate(NodeId node) { slots_.give_back(node); }
  /// Training ends: no slot is taken any more.
  void end() { ended_ = true; }

  /// Every slot has a node that has joined.
  bool is_complete() const { return slots_.all_filled(); }
  /// As `JobSlots::absent`.
  std::string absent() const { return slots_.absent(); }
  /// As `JobSlots::holder_name`.
  std::string holder_name(NodeId node) const { return slots_.holder_name(node); }
  /// All joins so far.
  const std::map<NodeId, wire::Join>& joins() const { return joins_; }

 private:
  std::optional<std::string> objection_to(NodeId node, const wire::Join& join) const;
  std::optional<std::string> objection_to_time(NodeId node, wire::Role role) const;

  std::string agreement_;
  JobSlots slots_;
  std::map<NodeId, wire::Join> joins_;
  std::set<NodeId> refused_;
  bool closed_ = false;
  bool ended_ = false;
};

}  // namespace syncopate
