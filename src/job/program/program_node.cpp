#include "job/program/program_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "base/errors.hpp"
#include "base/interruption.hpp"
#include "base/machine.hpp"
#include "collective/basic_collectives.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate {
namespace {

constexpr Duration closing_limit = std::chrono::seconds(2);

/// For the coordinator to notice that a program has ended, and to end the job.
constexpr Duration time_to_hear = std::chrono::seconds(1);

std::unique_ptr<Transport> transport_of(const ProgramLaunch& launch) {
  return join_over("shm", {.token = launch.key,
                           .coordinator = launch.coordinator,
                           .address = launch.address,
                           .unencrypted = launch.unencrypted});
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

// The numbers of groups: of that of all programs; while some of them agree on a number; of the
// first that is opened.
constexpr std::uint32_t of_everyone = 0;
constexpr std::uint32_t of_agreement = 1;
constexpr std::uint32_t of_first_group = 2;

/// The nodes of all programs, which the transport then knows, and their hosts, by any numbering.
Group::Options members_in(const wire::Roster& roster, Rank self, Transport& transport) {
  Group::Options options{.members = {}, .self = self};
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

ProgramGroup::Processes processes_in(const wire::Roster& roster) {
  std::vector<std::string> processes;
  for (const wire::Roster::Program& program : roster.programs()) {
    processes.push_back(fmt::format("pid {} on {}", program.pid(), program.host()));
  }
  return std::make_shared<const std::vector<std::string>>(std::move(processes));
}

}  // namespace

ProgramNode::ProgramNode(const ProgramLaunch& launch, Duration wait_limit)
    : world_(transport_of(launch)), next_group_(of_first_group) {
  post(world_.transport(), hello_of(launch, world_.transport()));
  const wire::Roster roster = mail_.receive(&wire::ToProgram::has_roster).roster();
  if (static_cast<std::uint32_t>(roster.programs_size()) != launch.size) {
    throw ProtocolError("the coordinator did not say where the other programs are");
  }
  programs_ = members_in(roster, Rank{launch.rank}, world_.transport());
  programs_.number = of_everyone;
  programs_.wait_limit = wait_limit;
  processes_ = processes_in(roster);
  everyone_ = std::make_unique<ProgramGroup>(world_, programs_, processes_);
  // A node that has never been connected to another cannot notice its loss.
  barrier(everyone_->group());
}

ProgramNode::~ProgramNode() {
  close();
}

void ProgramNode::close() {
  world_.transport().close(world_.now() + closing_limit);
}

std::unique_ptr<ProgramGroup> ProgramNode::open_group(const std::vector<Rank>& ranks,
                                                      Duration wait_limit) {
  Group::Options options{.members = {}, .self = {}, .wait_limit = wait_limit};
  for (const Rank rank : ranks) {
    if (rank == programs_.self) {
      options.self = Rank{static_cast<std::uint32_t>(options.members.size())};
    }
    options.members.push_back(programs_.members[rank.value]);
    options.hosts.push_back(programs_.hosts[rank.value]);
    options.ranks_in_job.push_back(rank);
  }
  options.number = agreed_number(options);
  return std::make_unique<ProgramGroup>(world_, options, processes_);
}

/// A number that no member has given to another group.
std::uint32_t ProgramNode::agreed_number(Group::Options members) {
  members.number = of_agreement;
  members.poll = interruption::throw_if_requested;
  Group group(world_, std::move(members));
  std::vector<std::uint32_t> numbers(group.size());
  allgather(group, std::as_bytes(std::span(&next_group_, 1)),
            std::as_writable_bytes(std::span(numbers)));
  const std::uint32_t number = *std::ranges::max_element(numbers);
  next_group_ = number + 1;
  return number;
}

std::exception_ptr ProgramNode::end_of_job() {
  return mail_.end_of_job(time_to_hear);
}

wire::Training ProgramNode::define(const LoopDefinition& definition) {
  wire::FromProgram message;
  *message.mutable_definition() = to_wire(definition);
  post(world_.transport(), message);
  try {
    return mail_.receive(&wire::ToProgram::has_training).training();
  } catch (const interruption::Interrupted&) {
    close();  // the others count on the training of this one
    throw;
  }
}

void ProgramNode::ask(const SharedDataset& dataset, const LeaseRequest& request) {
  wire::FromProgram message;
  *message.mutable_lease_request() = to_wire(request);
  message.mutable_lease_request()->set_dataset(dataset.number);
  message.mutable_lease_request()->set_samples(dataset.samples);
  post(world_.transport(), message);
}

Lease ProgramNode::await_lease(const SharedDataset& dataset) {
  const wire::ToProgram answer = mail_.receive([&](const wire::ToProgram& message) {
    return message.has_lease() && message.lease().dataset() == dataset.number;
  });
  const Lease lease = lease_of(answer.lease());
  if (lease.begin >= lease.end || lease.end > dataset.samples) {
    throw ProtocolError(fmt::format("the coordinator leased samples {} to {} of {}", lease.begin,
                                    lease.end, dataset.samples));
  }
  return lease;
}

}  // namespace syncopate
