#include "job/program/program_host.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/errors.hpp"
#include "job/program/program_training.hpp"
#include "report/events.hpp"
#include "runtime/control_link.hpp"
#include "runtime/member_ends.hpp"
#include "transport/tags.hpp"
#include "wire/control.hpp"

namespace syncopate {
namespace {

/// The user's request to end is noticed this soon.
constexpr Duration glance = std::chrono::milliseconds(100);

/// For the connections of a program that leaves a job, and joins the next one, to be closed here.
constexpr Duration time_to_leave = std::chrono::seconds(5);

/// For programs to come to a job that has failed before all had come.
constexpr Duration time_to_come = std::chrono::seconds(5);

ConfigError joined_already(std::uint32_t rank) {
  return ConfigError(fmt::format(
      "worker {} has joined already: a program is in one job at a time; leave it before "
      "the next init, by job.leave() or, in C++, the end of its scope; a program that a "
      "worker starts is not in the job: start it without the variables SYNCOPATE_*",
      rank));
}

/// As in a training (`JobPlan::membership`).
AdaptiveLimit::Options silence_of(Duration wait_limit) {
  AdaptiveLimit::Options silence = Membership::Options{}.silence;
  silence.floor = std::max(silence.floor, wait_limit);
  return silence;
}

}  // namespace

ProgramHost::ProgramHost(World& world, Options options)
    : world_(world),
      options_(std::move(options)),
      liveness_(silence_of(options_.wait_limit)),
      absence_(glance),
      launchers_(options_.programs,
                 options_.here.value_or(ProgramRange{.first = 0, .count = options_.programs})) {}

void ProgramHost::run() {
  try {
    do {
      serve();
    } while (options_.several_jobs && begin_next());
    wire::FromCoordinator over;
    over.mutable_ended();
    send_to_launchers(over);
  } catch (const std::exception& error) {
    if (!training_failed_) {
      relay({{"event", "failed"},
             {"kind", wire::Abort::Kind_Name(to_abort(error).kind())},
             {"error", error.what()}});
    }
    fail(error);
    throw;
  }
}

/// One job, from its first program to its last.
void ProgramHost::serve() {
  if (prepare()) {
    train();
  }
  wait_until_all_have_gone();
}

/// The programs may join again once all have left. Returns false where none does: all have ended,
/// or the user has requested the end.
bool ProgramHost::begin_next() {
  if (interrupted()) {
    return false;
  }
  programs_.clear();
  liveness_ = Liveness(silence_of(options_.wait_limit));
  books_.clear();
  first_came_.reset();
  introduced_ = trains_ = false;
  for (const Waiting& waiting : std::exchange(waiting_, {})) {
    admit(waiting.who);
  }
  while (programs_.empty() && !is_over() && !interrupted()) {
    take_events();
  }
  return !programs_.empty();
}

/// All programs get the error, also those that come a little later than one that has ended.
void ProgramHost::fail(const std::exception& error) {
  wire::FromCoordinator message;
  *message.mutable_abort() = to_abort(error);
  send_to_all(message);
  send_to_launchers(message);
  failure_ = message;
  const TimePoint until = world_.now() + time_to_come;
  const bool may_come = !introduced_ && !launchers_.ends().empty() && !interrupted();
  while (may_come && !launchers_.all_ended() && world_.now() < until) {
    take_events();
  }
}

/// Returns true once all programs have said what they train; false, where they have gone without.
bool ProgramHost::prepare() {
  while (!all_defined()) {
    take_events();
    if (interrupted()) {
      throw Cancelled("interrupted before training began");
    }
    if (is_over()) {
      return false;
    }
    check_time();
    note_missing();
    check_ends();
    check_gone();
    check_silence();
  }
  check_gone();
  check_definitions();
  return true;
}

/// Takes the messages that come within a glance.
void ProgramHost::take_events() {
  const TimePoint until = world_.now() + glance;
  liveness_.forgive(absence_.turn(world_.now()), world_.now());
  try {
    if (const auto message =
            world_.transport().try_receive(std::nullopt, tags::to_coordinator, until)) {
      handle(*message);
    }
  } catch (const PeerLost& loss) {
    lost(loss.peer());
    if (!failure_) {
      check_gone();
    }
  }
  turn();
  if (!failure_ && !interrupted()) {
    check_failures();
  }
}

void ProgramHost::turn() {
  for (const ProgramEnd& end : options_.ended()) {
    launchers_.ended(end.rank, end.wait_status);
  }
  refuse_waiting();
}

/// Drops what a training that has ended has left behind, such as a last heartbeat.
void ProgramHost::handle(const Message& message) {
  if (failure_) {
    send(message.from, *failure_);
    return;
  }
  try {
    take(message.from, wire::decode_to_coordinator(message.payload));
  } catch (const Error& error) {
    refuse(message.from, error);
  }
}

bool ProgramHost::take(NodeId from, const wire::ToCoordinator& message) {
  try {
    switch (message.body_case()) {
      case wire::ToCoordinator::kProgramHello: greet(from, message.program_hello()); return true;
      case wire::ToCoordinator::kLeaseRequest: lease(from, message.lease_request()); return true;
      case wire::ToCoordinator::kDefinition:
        program_at(from).definition = definition_of(message.definition());
        return true;
      case wire::ToCoordinator::kMet: program_at(from).met = true; return true;
      case wire::ToCoordinator::kAbort: return note_failure(from, message.abort());
      case wire::ToCoordinator::kHeartbeat: return note_heartbeat(from, message.heartbeat());
      case wire::ToCoordinator::kJoin: mark_as_training(from, true); return false;
      case wire::ToCoordinator::kLauncherHello:
        greet_launcher(from, message.launcher_hello());
        return true;
      case wire::ToCoordinator::kProgramEnded:
        launchers_.ended(from, message.program_ended());
        return true;
      case wire::ToCoordinator::kEndRequest: request_end(from); return true;
      case wire::ToCoordinator::kLeave: mark_as_training(from, false); return false;
      default: return false;
    }
  } catch (const Error& error) {
    refuse(from, error);
    return true;
  }
}

/// Errors: ConfigError, for a program that the job does not expect.
void ProgramHost::greet(NodeId node, const wire::ProgramHello& hello) {
  Member who = from_wire(hello.who());
  who.node = node;
  if (who.rank.value >= options_.programs || hello.size() != options_.programs) {
    throw ConfigError(fmt::format("this job has {} workers; found worker {} of {}",
                                  options_.programs, who.rank.value, hello.size()));
  }
  const bool taken = std::ranges::any_of(
      programs_, [&](const auto& known) { return known.second.who.rank == who.rank; });
  if (!taken) {
    admit(who);
  } else if (options_.several_jobs) {
    waiting_.push_back({.who = std::move(who), .since = world_.now()});
  } else {
    throw joined_already(who.rank.value);
  }
}

void ProgramHost::admit(const Member& who) {
  world_.transport().introduce(who.node, who.address);
  programs_[who.node] = {.who = who};
  liveness_.joined(who.node, world_.now());
  if (!first_came_) {
    first_came_ = world_.now();
  }
  if (programs_.size() == options_.programs) {
    introduce_all();
  }
}

/// A program that joins again may come before the loss of its earlier node is noticed. It waits for
/// the others to leave that job; one that has not left it itself would wait for ever.
void ProgramHost::refuse_waiting() {
  std::erase_if(waiting_, [this](const Waiting& waiting) {
    const bool stays = std::ranges::any_of(programs_, [&](const auto& known) {
      return known.second.who.rank == waiting.who.rank && !known.second.gone;
    });
    const bool refused = stays && world_.now() >= waiting.since + time_to_leave;
    if (refused) {
      refuse(waiting.who.node, joined_already(waiting.who.rank.value));
    }
    return refused;
  });
}

/// Errors: ConfigError, for a dataset of another length than that of the first program that asked.
void ProgramHost::lease(NodeId node, const wire::LeaseRequest& request) {
  const Rank worker = program_at(node).who.rank;
  const auto known =
      books_.try_emplace(request.dataset(), request.samples(), options_.programs).first;
  LeaseBook& book = known->second;
  if (book.samples() != request.samples()) {
    throw ConfigError(fmt::format(
        "dataset {} of worker {} has {} samples, but that of another worker has {}; every program "
        "of a job partitions the same datasets, in the same order",
        request.dataset(), worker.value, request.samples(), book.samples()));
  }
  wire::FromCoordinator message;
  wire::Lease& answer = *message.mutable_lease();
  answer.set_dataset(request.dataset());
  if (request.parts_size() > 0) {
    StepBook& steps = step_books_.try_emplace(request.dataset(), options_.programs).first->second;
    const auto& parts = steps.parts({request.epoch()}, request.step(),
                                    {request.parts().begin(), request.parts().end()});
    answer.mutable_parts()->Add(parts.begin(), parts.end());
    send(node, message);
    return;
  }
  const Lease leased = book.next({.worker = worker,
                                  .epoch = {request.epoch()},
                                  .step_size = request.step_size(),
                                  .trained = request.trained(),
                                  .taken = Duration(request.taken())});
  answer.set_epoch(leased.epoch.value);
  answer.set_begin(leased.begin);
  answer.set_end(leased.end);
  send(node, message);
}

void ProgramHost::refuse(NodeId node, const std::exception& error) {
  wire::FromCoordinator message;
  *message.mutable_abort() = to_abort(error);
  send(node, message);
}

/// Returns why a training cannot begin without the node. Once one has begun, its coordinator
/// decides.
std::optional<std::string> ProgramHost::lost(NodeId node) {
  launchers_.lost(node);
  std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.who.node == node; });
  const auto program = programs_.find(node);
  if (program == programs_.end()) {
    return std::nullopt;
  }
  program->second.gone = true;
  program->second.trains = false;
  if (!trains_ && !failure_) {
    relay(events::left(program->second.who.rank.value));
  }
  return missing_program();
}

/// A program that has gone where another one waits for it: in `init`, where all meet, or because it
/// has said what it trains.
std::optional<std::string> ProgramHost::missing_program() const {
  const bool awaited = std::ranges::any_of(programs_, [](const auto& other) {
    return !other.second.gone && other.second.definition.has_value();
  });
  for (const auto& [node, program] : programs_) {
    if (!program.failure.empty()) {
      return program.failure;
    }
    if (program.gone && (awaited || !program.met)) {
      return member_ends::ended_before_training(program.who.to_string());
    }
  }
  return std::nullopt;
}

/// Errors: Error, for a program that is missing.
void ProgramHost::check_gone() const {
  if (const auto why = trains_ ? std::nullopt : missing_program()) {
    throw Error(*why);
  }
}

/// Returns false for a heartbeat that is one of the training's, too.
bool ProgramHost::note_heartbeat(NodeId from, const wire::Heartbeat& heartbeat) {
  liveness_.on_heartbeat(from, heartbeat, world_.now());
  const auto program = programs_.find(from);
  return program == programs_.end()
             ? std::ranges::any_of(waiting_,
                                   [&](const Waiting& waiting) { return waiting.who.node == from; })
             : !program->second.trains;
}

/// Returns false for a failure of a program that has met the others.
bool ProgramHost::note_failure(NodeId from, const wire::Abort& abort) {
  const auto program = programs_.find(from);
  const bool has_not_met = program != programs_.end() && !program->second.met;
  if (has_not_met) {
    program->second.failure = abort.reason();
  }
  return has_not_met;
}

void ProgramHost::mark_as_training(NodeId node, bool trains) {
  const auto program = programs_.find(node);
  if (program != programs_.end()) {
    program->second.trains = trains;
  }
}

/// Outside of a training. Errors: PeerLost, for a program that no longer answers.
void ProgramHost::check_silence() const {
  for (const NodeId node : liveness_.silent(world_.now())) {
    const Program& program = programs_.at(node);
    if (!program.gone) {
      throw PeerLost(node, member_ends::silent(program.who.to_string(),
                                               liveness_.last_heard(node, world_.now())));
    }
  }
}

void ProgramHost::introduce_all() {
  introduced_ = true;
  View view;
  for (const auto& [rank, node] : nodes_by_rank()) {
    view.members.push_back(programs_.at(node).who);
  }
  wire::FromCoordinator message;
  *message.mutable_programs()->mutable_view() = to_wire(view);
  message.mutable_programs()->set_coordinator(options_.name);
  send_to_all(message);
}

bool ProgramHost::is_over() const {
  const bool all_gone = introduced_ && std::ranges::all_of(programs_, [](const auto& program) {
                          return program.second.gone;
                        });
  return all_gone || launchers_.all_ended();
}

bool ProgramHost::all_defined() const {
  return introduced_ && std::ranges::all_of(programs_, [](const auto& program) {
           return program.second.definition.has_value();
         });
}

void ProgramHost::check_time() const {
  if (introduced_ || !first_came_ || world_.now() < *first_came_ + options_.gather_limit) {
    return;
  }
  const auto nodes = nodes_by_rank();
  std::vector<std::uint32_t> missing;
  for (std::uint32_t rank = 0; rank < options_.programs; ++rank) {
    if (!nodes.contains(rank)) {
      missing.push_back(rank);
    }
  }
  throw TimedOut(fmt::format(
      "worker {} has not called syncopate::init within {:.0f} s of the first; see --gather-limit",
      fmt::join(missing, ", "), to_seconds(options_.gather_limit)));
}

/// Errors: Error, where a program has ended that others wait for in `init`.
void ProgramHost::check_ends() const {
  if (introduced_ || !first_came_) {
    return;  // programs that never join need no Syncopate
  }
  const auto nodes = nodes_by_rank();
  for (const auto& [rank, how] : launchers_.ends()) {
    if (!nodes.contains(rank)) {
      throw Error(fmt::format("worker {} {} before it joined", rank, how));
    }
  }
}

void ProgramHost::check_definitions() const {
  const LoopDefinition& first = *program_of(0).definition;
  for (std::uint32_t rank = 1; rank < options_.programs; ++rank) {
    expect_same(rank, *program_of(rank).definition, first);
  }
}

std::map<std::uint32_t, NodeId> ProgramHost::nodes_by_rank() const {
  std::map<std::uint32_t, NodeId> nodes;
  for (const auto& [node, program] : programs_) {
    nodes.emplace(program.who.rank.value, node);
  }
  return nodes;
}

const ProgramHost::Program& ProgramHost::program_of(std::uint32_t rank) const {
  return programs_.at(nodes_by_rank().at(rank));
}

/// Errors: ProtocolError, for a node that has not said which worker it is.
ProgramHost::Program& ProgramHost::program_at(NodeId node) {
  const auto program = programs_.find(node);
  if (program == programs_.end()) {
    throw ProtocolError("a program sent a message before it said which worker it is");
  }
  return program->second;
}

void ProgramHost::train() {
  ProgramTraining training({.definition = *program_of(0).definition,
                            .number = ++trainings_,
                            .programs = options_.programs,
                            .gather_limit = options_.gather_limit,
                            .emit = [this](const Json& event) { relay(event); },
                            .interrupted = [this] { return interrupted(); },
                            .name = options_.name,
                            .hung = options_.hung,
                            .wall_time = options_.wall_time});
  wire::FromCoordinator message;
  *message.mutable_training() = training.described();
  send_to_all(message);
  trains_ = training_failed_ = true;
  training.run(world_, *this,
               {.address = {},
                .token = options_.key,
                .own_address = options_.address,
                .own_place = options_.place,
                .encrypted = options_.encrypted,
                .unencrypted = options_.unencrypted});
  training_failed_ = false;
}

void ProgramHost::send(NodeId node, const wire::FromCoordinator& message) {
  world_.transport().post(node, tags::from_coordinator, wire::encode(message));
}

void ProgramHost::send_to_all(const wire::FromCoordinator& message) {
  for (const auto& [node, program] : programs_) {
    if (!program.gone) {
      send(node, message);
    }
  }
}

/// Programs may exchange tensors, or work by themselves, after their training.
void ProgramHost::wait_until_all_have_gone() {
  while (!is_over() && !interrupted()) {
    take_events();
    check_silence();
  }
  wire::FromCoordinator message;
  message.mutable_ended();
  send_to_all(message);
}

}  // namespace syncopate
