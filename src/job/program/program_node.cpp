#include "job/program/program_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/errors.hpp"
#include "base/interruption.hpp"
#include "base/machine.hpp"
#include "base/printable.hpp"
#include "config/option_values.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate {
namespace {

constexpr Duration closing_limit = std::chrono::seconds(2);

/// For the coordinator to notice that a program has ended, and to end the job.
constexpr Duration time_to_hear = std::chrono::seconds(1);

/// For a coordinator that is started by hand on another host.
constexpr std::chrono::milliseconds time_to_start = std::chrono::minutes(10);

std::unique_ptr<Transport> transport_of(const ProgramLaunch& launch, TransportKind kind) {
  const bool may_be_first = launch.address.empty();
  return join_over(name_of_value(kind == TransportKind::automatic ? TransportKind::shm : kind),
                   {.token = launch.key,
                    .coordinator = launch.coordinator,
                    .address = launch.address,
                    .interface = launch.place.interface,
                    .ports = launch.place.ports,
                    .timeout = may_be_first ? std::optional(time_to_start) : std::nullopt,
                    .encrypted = launch.encrypted,
                    .unencrypted = launch.unencrypted});
}

wire::ToCoordinator hello_of(const ProgramLaunch& launch, const Transport& transport) {
  wire::ToCoordinator message;
  message.mutable_program_hello()->set_size(launch.size);
  *message.mutable_program_hello()->mutable_who() = to_wire(Member{.node = {},
                                                                   .rank = Rank{launch.rank},
                                                                   .host = host_name(),
                                                                   .pid = process_id(),
                                                                   .address = transport.address(),
                                                                   .device = {},
                                                                   .machine = machine_identity()});
  return message;
}

/// The groups of a training have the numbers below. First that of all programs; while some of them
/// agree on a number; the first that is opened.
constexpr std::uint32_t of_everyone = ProgramGroup::first_number;
constexpr std::uint32_t of_agreement = of_everyone + 1;
constexpr std::uint32_t of_first_group = of_everyone + 2;

ProgramGroup::Processes processes_in(const View& view) {
  std::vector<std::string> processes;
  for (const Member& program : view.members) {
    processes.push_back(fmt::format("pid {} on {}", program.pid, program.host));
  }
  return std::make_shared<const std::vector<std::string>>(std::move(processes));
}

}  // namespace

/// Waits until `take`, which is called under the mutex, returns something. Errors: the error that
/// ended the job; Cancelled, when the user has ended it; Interrupted.
template <class Take>
auto ProgramNode::await(const Take& take) {
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (auto taken = take()) {
        return *std::move(taken);
      }
      if (ended_) {
        throw Cancelled("the job has ended, so the program gets no samples to train on");
      }
      changed_.wait_for(lock.native(), interruption::every);
    }
    link_.check();
    interruption::throw_if_requested();
  }
}

ProgramNode::ProgramNode(const ProgramLaunch& launch, TransportKind transport, Duration wait_limit)
    : world_(transport_of(launch, transport)),
      link_(world_, {.stays = true}),
      next_group_(of_first_group) {
  using Kind = wire::FromCoordinator::BodyCase;
  for (const Kind kind : {wire::FromCoordinator::kPrograms, wire::FromCoordinator::kTraining,
                          wire::FromCoordinator::kLease, wire::FromCoordinator::kEnded,
                          wire::FromCoordinator::kAbort}) {
    link_.on(kind, [this](const wire::FromCoordinator& message) { receive(message); });
  }
  link_.send(hello_of(launch, world_.transport()));
  link_.listen();
  const wire::Programs known = await([this]() REQUIRES(mutex_) { return introduction_; });
  link_.name_coordinator(printable(known.coordinator()));
  const View view = from_wire(known.view());
  if (view.members.size() != launch.size) {
    throw ProtocolError("the coordinator did not say where the other programs are");
  }
  for (const Member& program : view.members) {
    if (program.node != world_.transport().self()) {
      world_.transport().introduce(program.node, program.address);
    }
  }
  programs_ = {.members = view.nodes(Role::worker),
               .self = Rank{launch.rank},
               .wait_limit = wait_limit,
               .hosts = view.hosts(Role::worker),
               .number = of_everyone};
  processes_ = processes_in(view);
  everyone_ = std::make_unique<ProgramGroup>(world_, programs_, processes_);
  meet();
}

/// Reports a failure, because the coordinator is connected to each program and cannot see that two
/// of them do not reach each other: the others would wait in `init`.
void ProgramNode::meet() {
  try {
    everyone_->meet();
  } catch (const Error& error) {
    link_.fail(error);
  }
  wire::ToCoordinator message;
  message.mutable_met();
  link_.send(message);
}

ProgramNode::~ProgramNode() {
  close();
}

void ProgramNode::close() {
  link_.close(closing_limit);
}

/// Called by the link's receive loop.
void ProgramNode::receive(const wire::FromCoordinator& message) {
  {
    const MutexLock lock(mutex_);
    switch (message.body_case()) {
      case wire::FromCoordinator::kPrograms: introduction_ = message.programs(); break;
      case wire::FromCoordinator::kTraining: training_ = message.training(); break;
      case wire::FromCoordinator::kLease: leases_.push_back(message.lease()); break;
      case wire::FromCoordinator::kAbort: aborted_ = true; break;
      default: ended_ = true; break;
    }
  }
  changed_.notify_all();
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
  const std::uint32_t number =
      ProgramGroup(world_, std::move(members), processes_).largest(next_group_);
  next_group_ = number + 1;
  return number;
}

std::exception_ptr ProgramNode::end_of_job() {
  const TimePoint deadline = world_.now() + time_to_hear;
  MutexLock lock(mutex_);
  while (!aborted_ && world_.now() < deadline) {
    changed_.wait_for(lock.native(), deadline - world_.now());
  }
  const bool aborted = aborted_;
  lock.unlock();
  return aborted ? link_.ended() : nullptr;
}

wire::Training ProgramNode::define(const LoopDefinition& definition) {
  wire::ToCoordinator message;
  *message.mutable_definition() = to_wire(definition);
  link_.send(message);
  try {
    return await([this]() REQUIRES(mutex_) { return training_; });
  } catch (const interruption::Interrupted&) {
    close();  // the others count on the training of this one
    throw;
  }
}

void ProgramNode::ask(const SharedDataset& dataset, const LeaseRequest& request) {
  wire::ToCoordinator message;
  wire::LeaseRequest& asked = *message.mutable_lease_request();
  asked.set_dataset(dataset.number);
  asked.set_samples(dataset.samples);
  asked.set_epoch(request.epoch.value);
  asked.set_step_size(request.step_size);
  asked.set_trained(request.trained);
  asked.set_taken(request.taken.count());
  asked.set_step(request.step);
  asked.mutable_parts()->Add(request.parts.begin(), request.parts.end());
  link_.send(message);
}

Lease ProgramNode::await_lease(const SharedDataset& dataset) {
  const wire::Lease answer = await([&]() REQUIRES(mutex_) -> std::optional<wire::Lease> {
    const auto found = std::ranges::find(leases_, dataset.number, &wire::Lease::dataset);
    if (found == leases_.end()) {
      return std::nullopt;
    }
    wire::Lease lease = *found;
    leases_.erase(found);
    return lease;
  });
  Lease lease{.epoch = {answer.epoch()},
              .begin = answer.begin(),
              .end = answer.end(),
              .parts = {answer.parts().begin(), answer.parts().end()}};
  if (!lease.parts.empty()) {
    return lease;
  }
  if (lease.begin >= lease.end || lease.end > dataset.samples) {
    throw ProtocolError(fmt::format("the coordinator leased samples {} to {} of {}", lease.begin,
                                    lease.end, dataset.samples));
  }
  return lease;
}

}  // namespace syncopate
