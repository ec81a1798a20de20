#include "cluster/view.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace syncopate {

std::string Member::to_string() const {
  const std::string who =
      role == Role::worker ? fmt::format("worker {}", rank.value) : std::string("the evaluator");
  return fmt::format("{} (pid {} on {})", who, pid, host);
}

std::vector<Member> View::workers() const {
  std::vector<Member> found;
  std::copy_if(members.begin(), members.end(), std::back_inserter(found),
               [](const Member& member) { return member.role == Role::worker; });
  return found;
}

const Member* View::find(NodeId node) const {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const Member& member) { return member.node == node; });
  return found == members.end() ? nullptr : &*found;
}

const Member* View::find(Role role, Rank rank) const {
  const auto found = std::find_if(members.begin(), members.end(), [&](const Member& member) {
    return member.role == role && member.rank == rank;
  });
  return found == members.end() ? nullptr : &*found;
}

std::string View::describe(NodeId node) const {
  if (node == coordinator_node) {
    return "the coordinator";
  }
  const Member* member = find(node);
  return member ? member->to_string() : fmt::format("node {}", node.value);
}

wire::View to_wire(const View& view) {
  wire::View message;
  message.set_number(view.number);
  for (const Member& member : view.members) {
    auto& out = *message.add_members();
    out.set_node(member.node.value);
    out.set_role(member.role == Role::worker ? wire::ROLE_WORKER : wire::ROLE_EVALUATOR);
    out.set_rank(member.rank.value);
    out.set_host(member.host);
    out.set_pid(member.pid);
    out.set_address(member.address);
    out.set_device(member.device);
  }
  return message;
}

View from_wire(const wire::View& message) {
  View view{.number = message.number(), .members = {}};
  for (const auto& member : message.members()) {
    view.members.push_back({
        .node = NodeId{member.node()},
        .role = member.role() == wire::ROLE_WORKER ? Role::worker : Role::evaluator,
        .rank = Rank{member.rank()},
        .host = member.host(),
        .pid = member.pid(),
        .address = member.address(),
        .device = member.device(),
    });
  }
  return view;
}

}  // namespace syncopate
