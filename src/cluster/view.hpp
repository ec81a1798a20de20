#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "wire/control.pb.h"

namespace syncopate {

enum class Role { worker, evaluator };

/// A node that takes part in a job.
struct Member {
  NodeId node;
  Role role = Role::worker;
  Rank rank;  ///< among the members of its role
  std::string host;
  std::uint32_t pid = 0;
  std::string address;  ///< where its transport is reached
  std::string device;   ///< as people know it: "cpu", "gpu-old (emulated)"

  /// "worker 2 (pid 4711 on c3)"
  std::string to_string() const;
};

/// The membership of a job at one time, the same on every node. Members are in the order of ranks,
/// workers first.
struct View {
  std::uint64_t number = 0;
  std::vector<Member> members;

  std::vector<Member> workers() const;
  /// Null for a node that is no member.
  const Member* find(NodeId node) const;
  const Member* find(Role role, Rank rank) const;
  /// "worker 2 (pid 4711 on c3)", "the coordinator", or "node 7".
  std::string describe(NodeId node) const;
};

wire::View to_wire(const View& view);
View from_wire(const wire::View& view);

}  // namespace syncopate
