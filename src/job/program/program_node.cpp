#include "job/program/program_node.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/errors.hpp"
#include "base/machine_identity.hpp"
#include "runtime/control_link.hpp"
#include "transport/tags.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate {
namespace {

/// A program may work for long before it comes to a collective; the loss of one is noticed at once.
constexpr Duration longest_wait = std::chrono::minutes(30);

constexpr Duration closing_limit = std::chrono::seconds(2);

std::unique_ptr<Transport> transport_of(const ProgramLaunch& launch) {
  return join_over("shm", {.token = launch.key, .coordinator = launch.coordinator});
}

wire::FromProgram hello_of(const ProgramLaunch& launch, const Transport& transport) {
  wire::FromProgram message;
  wire::ProgramHello& hello = *message.mutable_hello();
  hello.set_rank(launch.rank);
  hello.set_size(launch.size);
  hello.set_address(transport.address());
  hello.set_machine(machine_identity());
  hello.set_pid(process_id());
  hello.set_host(host_name());
  return message;
}

/// The nodes of all programs, which the transport then knows, and their hosts, by any numbering.
Group::Options members_in(const wire::Roster& roster, Rank self, Transport& transport) {
  Group::Options options{.members = {}, .self = self, .wait_limit = longest_wait};
  std::map<std::string, std::uint32_t> hosts;
  for (const wire::Roster::Program& program : roster.programs()) {
    const NodeId node{program.node()};
    if (node != transport.self()) {
      transport.introduce(node, program.address());
    }
    options.members.push_back(node);
    const auto number = static_cast<std::uint32_t>(hosts.size());
    options.hosts.push_back(hosts.emplace(program.machine(), number).first->second);
  }
  return options;
}

}  // namespace

ProgramNode::ProgramNode(const ProgramLaunch& launch) : world_(transport_of(launch)) {
  post(world_.transport(), hello_of(launch, world_.transport()));
  const wire::ToProgram answer = receive();
  if (static_cast<std::uint32_t>(answer.roster().programs_size()) != launch.size) {
    throw ProtocolError("the coordinator did not say where the other programs are");
  }
  group_.emplace(world_, members_in(answer.roster(), Rank{launch.rank}, world_.transport()));
  allreduce_.emplace(*group_, Allreduce::Options{});
  collectives_.emplace(world_);
}

ProgramNode::~ProgramNode() {
  world_.transport().close(world_.now() + closing_limit);
}

wire::Training ProgramNode::define(const LoopDefinition& definition) {
  wire::FromProgram message;
  *message.mutable_definition() = to_wire(definition);
  post(world_.transport(), message);
  const wire::ToProgram answer = receive();
  if (!answer.has_training()) {
    throw ProtocolError("the coordinator did not say where training is joined");
  }
  return answer.training();
}

/// Errors: the error that the coordinator sends.
wire::ToProgram ProgramNode::receive() {
  try {
    wire::ToProgram message = to_program(
        world_.transport().receive(coordinator_node, tags::from_coordinator, no_deadline).payload);
    if (message.has_abort()) {
      std::rethrow_exception(to_error(message.abort()));
    }
    return message;
  } catch (const PeerLost&) {
    throw PeerLost(coordinator_node, "the coordinator of this job has ended");
  }
}

}  // namespace syncopate
