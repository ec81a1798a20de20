#include "runtime/job_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/errors.hpp"

namespace syncopate {

namespace {

wire::Role to_wire(Role role) {
  switch (role) {
    case Role::worker: return wire::ROLE_WORKER;
    case Role::server: return wire::ROLE_SERVER;
    case Role::evaluator: return wire::ROLE_EVALUATOR;
  }
  return wire::ROLE_UNKNOWN;
}

}  // namespace

Role role_from_wire(wire::Role role) {
  switch (role) {
    case wire::ROLE_WORKER: return Role::worker;
    case wire::ROLE_SERVER: return Role::server;
    case wire::ROLE_EVALUATOR: return Role::evaluator;
    default: throw ProtocolError(fmt::format("a member of unknown role {}", int{role}));
  }
}

std::string name_of(Role role, Rank rank) {
  switch (role) {
    case Role::worker: return fmt::format("worker {}", rank.value);
    case Role::server: return fmt::format("server {}", rank.value);
    case Role::evaluator: return "the evaluator";
  }
  return {};
}

std::string Member::to_string() const {
  return fmt::format("{} (pid {} on {})", name_of(role, rank), pid, host);
}

std::vector<Member> View::of(Role role) const {
  std::vector<Member> found;
  std::copy_if(members.begin(), members.end(), std::back_inserter(found),
               [&](const Member& member) { return member.role == role; });
  return found;
}

std::vector<NodeId> View::nodes(Role role) const {
  std::vector<NodeId> found;
  for (const Member& member : members) {
    if (member.role == role) {
      found.push_back(member.node);
    }
  }
  return found;
}

std::vector<std::uint32_t> View::hosts(Role role) const {
  std::vector<std::uint32_t> found;
  std::map<std::string, std::uint32_t> numbers;
  for (const Member& member : of(role)) {
    const std::string own = fmt::format("node {}", member.node.value);
    const auto next = static_cast<std::uint32_t>(numbers.size());
    found.push_back(
        numbers.emplace(member.machine.empty() ? own : member.machine, next).first->second);
  }
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

wire::Member to_wire(const Member& member) {
  wire::Member out;
  out.set_node(member.node.value);
  out.set_role(to_wire(member.role));
  out.set_rank(member.rank.value);
  out.set_host(member.host);
  out.set_pid(member.pid);
  out.set_address(member.address);
  out.set_device(member.device);
  out.set_machine(member.machine);
  return out;
}

Member from_wire(const wire::Member& member) {
  return {
      .node = NodeId{member.node()},
      .role = role_from_wire(member.role()),
      .rank = Rank{member.rank()},
      .host = member.host(),
      .pid = member.pid(),
      .address = member.address(),
      .device = member.device(),
      .machine = member.machine(),
  };
}

wire::View to_wire(const View& view) {
  wire::View message;
  message.set_number(view.number);
  for (const Member& member : view.members) {
    *message.add_members() = to_wire(member);
  }
  return message;
}

View from_wire(const wire::View& message) {
  View view{.number = message.number(), .members = {}};
  for (const auto& member : message.members()) {
    view.members.push_back(from_wire(member));
  }
  return view;
}

}  // namespace syncopate
