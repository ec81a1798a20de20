#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "wire/control.pb.h"

namespace syncopate {

enum class Role { worker, server, evaluator };

/// "worker 2", "server 0", "the evaluator".
std::string name_of(Role role, Rank rank);

/// A node that takes part in a job.
struct Member {
  NodeId node;
  Role role = Role::worker;
  Rank rank;  ///< among the members of its role
  std::string host;
  std::uint32_t pid = 0;
  std::string address;  ///< at which its transport is reached
  std::string device;   ///< text for the user: "cpu", "gpu-old (emulated)"
  std::string machine;  ///< the same for members of one host, see `machine_identity`

  /// "worker 2 (pid 4711 on c3)"
  std::string to_string() const;
};

/// The membership of a job at one time, the same on every node. Members are in the order of roles,
/// then of ranks, workers first.
struct View {
  std::uint64_t number = 0;
  std::vector<Member> members;

  std::vector<Member> workers() const { return of(Role::worker); }
  std::vector<Member> of(Role role) const;
  /// The nodes of a role, by rank.
  std::vector<NodeId> nodes(Role role) const;
  /// The host of each member of a role, by rank, numbered from 0 in the order in which they occur.
  /// A member without a known machine has a host of its own.
  std::vector<std::uint32_t> hosts(Role role) const;
  /// Null for a node that is no member.
  const Member* find(NodeId node) const;
  const Member* find(Role role, Rank rank) const;
  /// "worker 2 (pid 4711 on c3)", "the coordinator", or "node 7".
  std::string describe(NodeId node) const;
};

/// Reports the workers without which a job continues, by the coordinator's decision.
///
/// Thread: any; one at a time waits in `await_more`.
class FailureListener {
 public:
  virtual ~FailureListener() = default;

  /// Ranks, in the order in which the coordinator dropped them, which is the same for all members.
  virtual std::vector<Rank> lost() const = 0;

  /// Reports to the coordinator that this worker has finished its last synchronization. Call it
  /// once.
  virtual void finished() = 0;
  /// True once every remaining worker has finished its last synchronization, so no result can be
  /// requested any more.
  virtual bool all_finished() const = 0;

  /// Blocks until more than `known` are lost, or all have finished. Returns false at the deadline.
  /// Errors: the error that ended the job.
  virtual bool await_more(std::size_t known, TimePoint deadline) = 0;
};

/// Errors: ProtocolError if this build does not know the role.
Role role_from_wire(wire::Role role);
wire::Member to_wire(const Member& member);
/// Errors: as `role_from_wire`.
Member from_wire(const wire::Member& member);
wire::View to_wire(const View& view);
View from_wire(const wire::View& view);

}  // namespace syncopate
