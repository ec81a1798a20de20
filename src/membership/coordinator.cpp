#include "membership/coordinator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "base/errors.hpp"
#include "transport/tags.hpp"
#include "wire/control.hpp"

namespace syncopate {
namespace {

constexpr Duration tick = std::chrono::milliseconds(100);
constexpr Duration farewell = std::chrono::seconds(2);
/// A worker is told its share of the speed again when it has changed by more than this part of it.
constexpr double share_tolerance = 0.02;

}  // namespace

Coordinator::Coordinator(World& world, JobObserver& observer, Options options)
    : world_(world),
      observer_(observer),
      membership_(std::move(options.membership), world.now()),
      description_(std::move(options.description)) {
  if (options.pacing) {
    pacer_.emplace(std::move(*options.pacing));
  }
}

void Coordinator::run() {
  while (!done_) {
    for (const Decision& decision : next_event()) {
      carry_out(decision);
    }
    for (const Decision& decision : membership_.time_passed(world_.now())) {
      carry_out(decision);
    }
    keep_pace();
    stop_if_wanted();
  }
  world_.transport().close(world_.now() + farewell);
}

Decisions Coordinator::next_event() {
  try {
    const TimePoint now = world_.now();
    const TimePoint until = next_tick_ > now ? std::min(next_tick_, now + tick) : now + tick;
    const Message message = world_.transport().receive(std::nullopt, tags::to_coordinator, until);
    return understand(message);
  } catch (const TimedOut&) {
    return {};  // the tick
  } catch (const PeerLost& loss) {
    return membership_.lost(loss.peer(), world_.now());
  }
}

Decisions Coordinator::understand(const Message& message) {
  try {
    return handle(message.from, wire::decode_to_coordinator(message.payload));
  } catch (const ProtocolError& error) {
    return membership_.failed(message.from, to_abort(error));
  }
}

Decisions Coordinator::handle(NodeId from, const wire::ToCoordinator& message) {
  const bool known = membership_.view() && membership_.is_present(from);
  const Member* member = known ? membership_.view()->find(from) : nullptr;
  switch (message.body_case()) {
    case wire::ToCoordinator::kJoin: return handle_join(from, message.join());
    case wire::ToCoordinator::kHeartbeat:
      if (member) {
        observer_.heard(*member, message.heartbeat());
      }
      return membership_.heard(from, message.heartbeat(), world_.now());
    case wire::ToCoordinator::kArrived: return handle_arrival(from, message.arrived());
    case wire::ToCoordinator::kMissing:
      return membership_.missing(from, message.missing(), world_.now());
    case wire::ToCoordinator::kAbort: return membership_.failed(from, message.abort());
    case wire::ToCoordinator::kEvaluation: observer_.evaluated(message.evaluation()); return {};
    case wire::ToCoordinator::kCheckpoint:
      observer_.checkpoint_written(message.checkpoint());
      return {};
    case wire::ToCoordinator::kLeave:
      if (member) {
        observer_.left(*member, message.leave());
        no_longer_pace(from);
      }
      return membership_.left(from);
    case wire::ToCoordinator::kStepped: return handle_step(from, message.stepped());
    case wire::ToCoordinator::kComplete:
      if (member) {
        stop_when_complete();
      }
      return {};
    case wire::ToCoordinator::kEnquire: return membership_.enquired(from, message.enquire());
    case wire::ToCoordinator::BODY_NOT_SET: break;
  }
  throw ProtocolError("the coordinator was sent a control message that it has no answer to");
}

Decisions Coordinator::handle_step(NodeId from, const wire::Stepped& stepped) {
  const View* view = membership_.view();
  const Member* member = view ? view->find(from) : nullptr;
  if (!pacer_ || !member || member->role != Role::worker) {
    throw ProtocolError("the coordinator was told of a step, but nobody's steps are paced");
  }
  const StepReport report{.round = stepped.round(),
                          .steps = stepped.steps(),
                          .samples = stepped.samples(),
                          .took = from_seconds(stepped.seconds()),
                          .meets = stepped.meets(),
                          .communicated = from_seconds(stepped.communicated_seconds())};
  const Paces paces = pacer_->stepped(member->rank, report, world_.now());
  observer_.stepped(member->rank, report);
  carry_out(paces);
  return {};
}

Decisions Coordinator::handle_arrival(NodeId from, const wire::Arrived& arrived) {
  if (arrived.restarts()) {
    restart_barrier_ = std::max(restart_barrier_, arrived.barrier());
  }
  if (pacer_ && arrived.has_pacer()) {
    try {
      pacer_->load(arrived.pacer());
    } catch (const ConfigError& error) {
      return membership_.refused(error.what());
    }
  }
  return membership_.arrived(from, arrived.barrier());
}

/// What the pacer decides depends on reports, and on ticks that begin at the restart: on nothing that
/// differs in a run that is resumed there.
void Coordinator::restart_pace() {
  next_tick_ = world_.now() + tick;
  shares_told_.clear();
  carry_out(pacer_->restart(world_.now()));
}

void Coordinator::keep_pace() {
  if (!pacer_ || !membership_.view() || world_.now() < next_tick_) {
    return;
  }
  next_tick_ = world_.now() + tick;
  carry_out(pacer_->time_passed(world_.now()));
  const PacerState state = pacer_->state();
  observer_.paced(state);
  tell_speed_shares(state);
}

void Coordinator::tell_speed_shares(const PacerState& state) {
  const std::vector<double> shares = speed_shares(state);
  shares_told_.resize(shares.size());
  for (std::uint32_t rank = 0; rank < shares.size(); ++rank) {
    const double change = std::abs(shares[rank] - shares_told_[rank]);
    if (shares[rank] == 0 || change <= share_tolerance * shares[rank]) {
      continue;
    }
    shares_told_[rank] = shares[rank];
    wire::FromCoordinator message;
    message.mutable_speed_share()->set_share(shares[rank]);
    tell(membership_.view()->find(Role::worker, Rank{rank})->node, message);
  }
}

void Coordinator::carry_out(const Paces& paces) {
  for (const Pace& pace : paces) {
    wire::FromCoordinator message;
    message.mutable_pace()->set_round(pace.round);
    message.mutable_pace()->set_meet_after(pace.meet_after.value_or(0));
    message.mutable_pace()->set_step_samples(pace.step_samples);
    tell(membership_.view()->find(Role::worker, pace.worker)->node, message);
    observer_.pace_decided(pace, world_.now() - installed_);
  }
}

void Coordinator::no_longer_pace(NodeId node) {
  const Member* member = membership_.view()->find(node);
  if (pacer_ && member->role == Role::worker) {
    carry_out(pacer_->left(member->rank, world_.now()));
  }
}

Decisions Coordinator::handle_join(NodeId from, const wire::Join& join) {
  // Every member hears of every other from the view, but the coordinator answers before that.
  try {
    world_.transport().introduce(from, join.address());
  } catch (const Error& error) {
    throw ProtocolError(fmt::format("it cannot be reached: {}", error.what()));
  }
  const bool gathering = membership_.view() == nullptr;
  Decisions decisions = membership_.joined(from, join, world_.now());
  if (gathering && membership_.view()) {
    if (const auto objection = observer_.objection(membership_.joins())) {
      return membership_.refused(*objection);
    }
  }
  return decisions;
}

void Coordinator::carry_out(const Decision& decision) {
  std::visit([this](const auto& decided) { act(decided); }, decision);
}

void Coordinator::act(const AnswerEnquiry& answer) {
  wire::FromCoordinator message;
  *message.mutable_job() = description_;
  message.mutable_job()->set_index(answer.index);
  tell(answer.node, message);
}

void Coordinator::act(const RefuseJoin& refusal) {
  wire::FromCoordinator message;
  *message.mutable_abort() = refusal.abort;
  tell(refusal.node, message);
  observer_.refused(refusal.abort.reason());
}

void Coordinator::act(const NameAbsent& absent) {
  observer_.awaiting(absent.names);
}

/// What workers begin a new job with they know without a message.
void Coordinator::tell_first_paces() {
  const PacerState state = pacer_->state();
  if (state.round > 1) {
    return;
  }
  for (std::uint32_t rank = 0; rank < state.workers.size(); ++rank) {
    const PacerState::Worker& worker = state.workers[rank];
    if (worker.reason) {
      observer_.pace_decided({.worker = Rank{rank},
                              .round = worker.round,
                              .meet_after = worker.meet_after,
                              .step_samples = worker.step_samples,
                              .reason = *worker.reason},
                             Duration::zero());
    }
  }
}

void Coordinator::act(const InstallView& install) {
  observer_.view_installed(install.view);
  installed_ = world_.now();
  if (pacer_) {
    tell_first_paces();
  }
  wire::FromCoordinator message;
  *message.mutable_view() = to_wire(install.view);
  tell_everyone(message);
}

void Coordinator::act(const ReleaseBarrier& release) {
  const bool restarts = release.barrier == restart_barrier_;
  wire::FromCoordinator message;
  message.mutable_released()->set_barrier(release.barrier);
  message.mutable_released()->set_restarts(restarts);
  if (restarts && pacer_) {
    *message.mutable_released()->mutable_pacer() = pacer_->memory();
  }
  tell_everyone(message);
  if (restarts && pacer_) {
    restart_pace();
  }
}

void Coordinator::act(const DropWorker& drop) {
  wire::FromCoordinator to_others;
  to_others.mutable_dropped()->set_node(drop.member.node.value);
  to_others.mutable_dropped()->set_rank(drop.member.rank.value);
  to_others.mutable_dropped()->set_reason(drop.reason);
  tell_everyone(to_others);
  // Should it still be there, it must not go on by itself.
  wire::FromCoordinator to_it;
  to_it.mutable_abort()->set_kind(wire::Abort::KIND_PEER_LOST);
  to_it.mutable_abort()->set_node(drop.member.node.value);
  to_it.mutable_abort()->set_reason("the job goes on without " + drop.reason);
  tell(drop.member.node, to_it);
  no_longer_pace(drop.member.node);
  observer_.dropped(drop.member, drop.reason);
}

void Coordinator::act(const ExtendWait& extension) {
  wire::FromCoordinator message;
  message.mutable_more_time()->set_wait(extension.wait);
  message.mutable_more_time()->set_seconds(to_seconds(extension.more));
  tell(extension.node, message);
}

void Coordinator::act(const EndJob& end) {
  wire::FromCoordinator message;
  *message.mutable_abort() = end.abort;
  tell_everyone(message);
  world_.transport().close(world_.now() + farewell);
  std::rethrow_exception(to_error(end.abort));
}

void Coordinator::act(const JobDone& /*done*/) {
  done_ = true;
}

void Coordinator::stop_if_wanted() {
  const auto reason = observer_.reason_to_stop();
  if (!reason || stopping_ || !membership_.view()) {
    return;
  }
  stopping_ = true;
  wire::FromCoordinator message;
  message.mutable_stop()->set_reason(*reason);
  tell_everyone(message);
}

/// The samples of the job are complete: every worker stops at once, and what is in flight is cancelled.
void Coordinator::stop_when_complete() {
  if (complete_ || !membership_.view()) {
    return;
  }
  complete_ = true;
  wire::FromCoordinator message;
  message.mutable_stop()->set_reason("every epoch is done");
  message.mutable_stop()->set_complete(true);
  tell_everyone(message);
}

void Coordinator::tell(NodeId node, const wire::FromCoordinator& message) {
  world_.transport().post(node, tags::from_coordinator, wire::encode(message));
}

void Coordinator::tell_everyone(const wire::FromCoordinator& message) {
  for (const auto& [node, join] : membership_.joins()) {
    if (membership_.is_present(node)) {
      tell(node, message);
    }
  }
}

std::exception_ptr to_error(const wire::Abort& abort) {
  switch (abort.kind()) {
    case wire::Abort::KIND_PEER_LOST:
      return std::make_exception_ptr(PeerLost(NodeId{abort.node()}, abort.reason()));
    case wire::Abort::KIND_TIMED_OUT: return std::make_exception_ptr(TimedOut(abort.reason()));
    case wire::Abort::KIND_CONFIG: return std::make_exception_ptr(ConfigError(abort.reason()));
    case wire::Abort::KIND_DATA: return std::make_exception_ptr(DataError(abort.reason()));
    case wire::Abort::KIND_NOT_FINITE: return std::make_exception_ptr(NotFinite(abort.reason()));
    default: return std::make_exception_ptr(Error(abort.reason()));
  }
}

wire::Abort to_abort(const std::exception& error) {
  wire::Abort abort;
  abort.set_reason(error.what());
  if (dynamic_cast<const ConfigError*>(&error)) {
    abort.set_kind(wire::Abort::KIND_CONFIG);
  } else if (dynamic_cast<const DataError*>(&error)) {
    abort.set_kind(wire::Abort::KIND_DATA);
  } else if (dynamic_cast<const NotFinite*>(&error)) {
    abort.set_kind(wire::Abort::KIND_NOT_FINITE);
  } else if (dynamic_cast<const TimedOut*>(&error)) {
    abort.set_kind(wire::Abort::KIND_TIMED_OUT);
  } else if (const auto* loss = dynamic_cast<const PeerLost*>(&error)) {
    abort.set_kind(wire::Abort::KIND_PEER_LOST);
    abort.set_node(loss->peer().value);
  }
  return abort;
}

}  // namespace syncopate
