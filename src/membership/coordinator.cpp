#include "membership/coordinator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/errors.hpp"
#include "membership/acceptance.hpp"
#include "runtime/member_ends.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

constexpr Duration closing_limit = std::chrono::seconds(2);
/// The same after the user's request to end: less than the 0.4 s after which a supervisor kills the
/// processes of a job that has failed (`Supervisor::Options::requested_grace`).
constexpr Duration urgent_closing_limit = std::chrono::milliseconds(250);
/// The event loop makes ten turns per second, but may write to a disk between two turns.
constexpr Duration least_hang_limit = std::chrono::seconds(10);
/// Time for the last messages of a coordinator that hangs to leave.
constexpr Duration flush_time = std::chrono::milliseconds(500);

}  // namespace

Coordinator::Coordinator(World& world, JobObserver& observer, Options options)
    : world_(world),
      observer_(observer),
      membership_(options.membership, world.now()),
      pacing_(std::move(options.pacing)),
      service_(options.service),
      description_(std::move(options.description)),
      name_(std::move(options.name)),
      hung_(std::move(options.hung)),
      hang_limit_(std::max(options.membership.waits.wait_limit, least_hang_limit)) {}

void Coordinator::run() {
  watch_.emplace(
      world_, TurnWatch::Options{.limit = hang_limit_,
                                 .stands_still = [this](Duration still) { end_hung_job(still); }});
  // Silence is judged only after all messages have been read, so that every sign of life counts.
  bool may_have_more = false;
  while (!done_) {
    watch_->turned();
    may_have_more = handle_event(may_have_more ? world_.now() : end_of_pause());
    if (!may_have_more) {
      carry_out(membership_.time_passed(world_.now()));
    }
    if (pacing_) {
      pacing_->tick();
    }
    if (service_) {
      service_->turn();
    }
    stop_if_requested();
    ping_if_due();
  }
  watch_->end();
  close(closing_limit);
}

/// Gives up members that were dropped some time ago: one that hangs would use up the whole limit. A
/// member that was dropped a moment ago may still read the reason. A node with a service stays.
void Coordinator::close(Duration limit) {
  if (service_) {
    return;
  }
  const TimePoint now = world_.now();
  for (const auto& [node, when] : dropped_) {
    if (now - when >= closing_limit) {
      world_.transport().give_up(node);
    }
  }
  world_.transport().close(now + limit);
}

TimePoint Coordinator::end_of_pause() const {
  const TimePoint now = world_.now();
  const TimePoint tick = now + Membership::turn_every;
  const TimePoint next = pacing_ ? pacing_->next_tick() : TimePoint{};
  return next > now ? std::min(next, tick) : tick;
}

/// Handles the next event that arrives before `until`. Returns false if there was none.
bool Coordinator::handle_event(TimePoint until) {
  Decisions decisions;
  try {
    const auto message = world_.transport().try_receive(std::nullopt, tags::to_coordinator, until);
    membership_.begin_turn(world_.now());
    if (!message) {
      return false;
    }
    decisions = decode_and_handle(*message);
  } catch (const PeerLost& loss) {
    membership_.begin_turn(world_.now());
    decisions = lose(loss.peer());
  }
  carry_out(decisions);
  return true;
}

Decisions Coordinator::lose(NodeId node) {
  Decisions decisions = membership_.lost(node, world_.now());
  const auto why = service_ ? service_->lost(node) : std::nullopt;
  if (why && !membership_.view()) {
    append(decisions, membership_.cannot_begin(*why));
  }
  return decisions;
}

/// If a member sends a message that cannot be decoded or handled, only this member fails.
Decisions Coordinator::decode_and_handle(const Message& message) {
  try {
    const wire::ToCoordinator decoded = wire::decode_to_coordinator(message.payload);
    if (service_ && service_->take(message.from, decoded)) {
      return {};
    }
    return admits(message.from, decoded) ? handle_or_reject(message.from, decoded) : Decisions{};
  } catch (const ProtocolError& error) {
    return membership_.failed(message.from, to_abort(error));
  }
}

/// Returns true if the node may send this message. Reports the first message of each node that it
/// may not send; all of these are dropped.
bool Coordinator::admits(NodeId from, const wire::ToCoordinator& message) {
  const Sender sender = membership_.sender(from);
  const auto phase = membership_.view() ? JobPhase::started : JobPhase::gathering;
  if (is_accepted(message.body_case(), sender, phase)) {
    return true;
  }
  if (sender != Sender::gone && warned_of_.insert(from).second) {
    observer_.refused(fmt::format(
        "{} sent a message that it may not send ({}{}); this one and others like it are dropped",
        membership_.name_of(from), name_of(message.body_case()),
        phase == JobPhase::gathering ? ", while the job gathers" : ""));
  }
  return false;
}

/// Errors: ProtocolError if the message cannot be handled; the errors of this node itself.
Decisions Coordinator::handle_or_reject(NodeId from, const wire::ToCoordinator& message) {
  if (const auto objection = objection_to(message)) {
    throw ProtocolError(fmt::format("its {}: {}", name_of(message.body_case()), *objection));
  }
  try {
    return handle(from, message);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {  // such as std::bad_optional_access
    throw ProtocolError(
        fmt::format("its {} cannot be handled: {}", name_of(message.body_case()), error.what()));
  }
}

Decisions Coordinator::handle(NodeId from, const wire::ToCoordinator& message) {
  const Member* member = present_member(from);
  switch (message.body_case()) {
    case wire::ToCoordinator::kJoin: return handle_join(from, message.join());
    case wire::ToCoordinator::kHeartbeat:
      if (member) {
        observer_.heartbeat_received(*member, message.heartbeat());
      }
      membership_.on_heartbeat(from, message.heartbeat(), world_.now());
      return {};
    case wire::ToCoordinator::kArrived: return handle_arrival(from, message.arrived());
    case wire::ToCoordinator::kMissing:
      return membership_.missing(from, message.missing(), world_.now());
    case wire::ToCoordinator::kAbort:
      return message.abort().kind() == wire::Abort::KIND_TIMED_OUT
                 ? membership_.waited_in_vain(from, message.abort(), world_.now())
                 : membership_.failed(from, message.abort());
    case wire::ToCoordinator::kEvaluation: observer_.evaluated(message.evaluation()); return {};
    case wire::ToCoordinator::kCheckpoint:
      observer_.checkpoint_written(message.checkpoint());
      return {};
    case wire::ToCoordinator::kLeave:
      if (member) {
        observer_.left(*member, message.leave());
        end_pacing_of(*member);
      }
      return membership_.left(from);
    case wire::ToCoordinator::kStepped: return handle_step(from, message);
    case wire::ToCoordinator::kComplete:
      if (member) {
        handle_completion(message.complete());
      }
      return {};
    case wire::ToCoordinator::kEnquire: return membership_.enquired(from, message.enquire());
    case wire::ToCoordinator::kRejected: return handle_rejection(message.rejected());
    case wire::ToCoordinator::kProgramHello:
    case wire::ToCoordinator::kDefinition:
    case wire::ToCoordinator::kLeaseRequest:
    case wire::ToCoordinator::kLauncherHello:
    case wire::ToCoordinator::kProgramEnded:
    case wire::ToCoordinator::kEndRequest:
    case wire::ToCoordinator::kMet:  // those of the service
    case wire::ToCoordinator::BODY_NOT_SET: break;
  }
  throw ProtocolError("the coordinator received a control message of an unknown kind");
}

const Member* Coordinator::present_member(NodeId node) const {
  const View* view = membership_.view();
  return view && membership_.is_present(node) ? view->find(node) : nullptr;
}

Decisions Coordinator::handle_step(NodeId from, const wire::ToCoordinator& message) {
  const View* view = membership_.view();
  const Member* member = view ? view->find(from) : nullptr;
  if (!pacing_ || !member || !pacing_->handle(*member, message)) {
    throw ProtocolError("the coordinator received a step report of a worker that is not paced");
  }
  return {};
}

/// A worker brings the speed of its device, and the first one the pacer's memory from a checkpoint.
Decisions Coordinator::handle_arrival(NodeId from, const wire::Arrived& arrived) {
  const Sender sender = membership_.sender(from);
  const bool leads = sender == Sender::leader;
  if (arrived.restarts() && (leads || sender == Sender::worker)) {
    restart_barrier_ = std::max(restart_barrier_, arrived.barrier());
  }
  const Member* const member = present_member(from);
  if (pacing_ && member != nullptr) {
    try {
      pacing_->arrived(*member, arrived);
    } catch (const ConfigError& error) {
      return membership_.refused(error.what());
    }
  }
  return membership_.arrived(from, arrived.barrier());
}

/// Only a worker can be rejected: a server cannot accuse another server, or the evaluator.
Decisions Coordinator::handle_rejection(const wire::Rejected& rejected) {
  const NodeId node{rejected.node()};
  const Member* member = present_member(node);
  if (!member || member->role != Role::worker) {
    return {};
  }
  return membership_.failed(node, to_abort(ProtocolError(rejected.reason())));
}

void Coordinator::end_pacing_of(const Member& member) {
  if (pacing_) {
    pacing_->gone(member);
  }
}

Decisions Coordinator::handle_join(NodeId from, const wire::Join& join) {
  // The view introduces the members to each other, but the coordinator answers before that.
  try {
    world_.transport().introduce(from, join.address());
  } catch (const Error& error) {
    throw ProtocolError(fmt::format("it cannot be reached: {}", error.what()));
  }
  const bool gathering = membership_.view() == nullptr;
  Decisions decisions = membership_.joined(from, join, world_.now());
  {
    const MutexLock lock(joined_mutex_);
    joined_.push_back(from);
  }
  if (gathering && membership_.view()) {
    if (const auto objection = observer_.objection(membership_.joins())) {
      return membership_.refused(*objection);
    }
  }
  return decisions;
}

void Coordinator::carry_out(const Decisions& decisions) {
  for (const Decision& decision : decisions) {
    std::visit([this](const auto& decided) { act(decided); }, decision);
  }
}

void Coordinator::act(const AnswerEnquiry& answer) {
  wire::FromCoordinator message;
  *message.mutable_job() = description_;
  message.mutable_job()->set_index(answer.index);
  send(answer.node, message);
}

void Coordinator::act(const RefuseJoin& refusal) {
  wire::FromCoordinator message;
  *message.mutable_abort() = refusal.abort;
  send(refusal.node, message);
  observer_.refused(refusal.abort.reason());
}

void Coordinator::act(const ReportAbsent& absent) {
  observer_.awaiting(absent.names);
}

void Coordinator::act(const Note& note) {
  observer_.noted(note.text);
}

void Coordinator::act(const InstallView& install) {
  observer_.view_installed(install.view);
  if (pacing_) {
    pacing_->view_installed(install.view);
  }
  wire::FromCoordinator message;
  *message.mutable_view() = to_wire(install.view);
  send_to_all(message);
}

void Coordinator::act(const ReleaseBarrier& release) {
  const bool restarts = release.barrier == restart_barrier_;
  wire::FromCoordinator message;
  message.mutable_released()->set_barrier(release.barrier);
  message.mutable_released()->set_restarts(restarts);
  if (restarts && pacing_) {
    pacing_->before_restart(*message.mutable_released());
  }
  send_to_all(message);
  if (restarts && pacing_) {
    pacing_->restarted();
  }
}

void Coordinator::act(const DropWorker& drop) {
  wire::FromCoordinator to_others;
  to_others.mutable_dropped()->set_node(drop.member.node.value);
  to_others.mutable_dropped()->set_rank(drop.member.rank.value);
  to_others.mutable_dropped()->set_reason(drop.reason);
  if (drop.member.role == Role::evaluator) {
    to_others.mutable_dropped()->set_role(wire::ROLE_EVALUATOR);
  }
  send_to_all(to_others);
  // A member that still runs must not continue by itself.
  wire::FromCoordinator to_worker;
  to_worker.mutable_abort()->set_kind(wire::Abort::KIND_PEER_LOST);
  to_worker.mutable_abort()->set_node(drop.member.node.value);
  to_worker.mutable_abort()->set_reason("the job goes on without " + drop.reason);
  if (drop.hangs) {
    to_worker.mutable_abort()->add_hung(drop.member.node.value);
  }
  send(drop.member.node, to_worker);
  dropped_[drop.member.node] = world_.now();
  end_pacing_of(drop.member);
  observer_.dropped(drop.member, drop.reason);
}

void Coordinator::act(const ExtendWait& extension) {
  wire::FromCoordinator message;
  message.mutable_more_time()->set_wait(extension.wait);
  message.mutable_more_time()->set_seconds(to_seconds(extension.more));
  send(extension.node, message);
}

void Coordinator::act(const EndJob& end) {
  wire::FromCoordinator message;
  *message.mutable_abort() = end.abort;
  send_to_all(message);
  close(observer_.end_is_urgent() ? urgent_closing_limit : closing_limit);
  std::rethrow_exception(to_error(end.abort));
}

void Coordinator::act(const JobDone& /*done*/) {
  done_ = true;
}

void Coordinator::ping_if_due() {
  if (const auto number = membership_.next_ping(world_.now())) {
    wire::FromCoordinator message;
    message.mutable_ping()->set_number(*number);
    message.mutable_ping()->set_sent(world_.now().time_since_epoch().count());
    send_to_all(message);
  }
}

void Coordinator::act(const ReplaceEvaluator& replacement) {
  wire::FromCoordinator to_others;
  *to_others.mutable_replaced() = to_wire(replacement.member);
  for (const Member& member : replacement.view.members) {
    if (member.node != replacement.member.node && membership_.is_present(member.node)) {
      send(member.node, to_others);
    }
  }
  wire::FromCoordinator to_evaluator;
  *to_evaluator.mutable_view() = to_wire(replacement.view);
  send(replacement.member.node, to_evaluator);
  observer_.replaced(replacement.member);
}

void Coordinator::stop_if_requested() {
  const auto reason = observer_.reason_to_stop();
  if (reason && observer_.end_is_urgent()) {
    carry_out(membership_.end_requested(world_.now()));
  }
  if (reason && membership_.view()) {
    stop(*reason);
  }
}

/// Ends training, as on the user's request: gradients that were computed still enter the model.
void Coordinator::stop(const std::string& reason) {
  if (std::exchange(stopping_, true)) {
    return;
  }
  wire::FromCoordinator message;
  message.mutable_stop()->set_reason(reason);
  send_to_all(message);
}

void Coordinator::handle_completion(const wire::Complete& complete) {
  if (complete.out_of_time()) {
    stop("the limit of time is reached");
  } else {
    stop_when_complete();
  }
}

/// Stops every worker at once because the samples of the job are complete: each one cancels its
/// step in progress.
void Coordinator::stop_when_complete() {
  if (complete_ || !membership_.view()) {
    return;
  }
  complete_ = true;
  wire::FromCoordinator message;
  message.mutable_stop()->set_reason("every epoch is done");
  message.mutable_stop()->set_complete(true);
  send_to_all(message);
}

/// Called while the task of `run` hangs. Posted messages leave without another task of this
/// process. The hanging task may have stopped within a send: then no other send to that node
/// returns, so each has a task of its own.
void Coordinator::end_hung_job(Duration still) {
  const std::string reason = member_ends::stands_still(name_, still);
  wire::FromCoordinator message;
  message.mutable_abort()->set_kind(wire::Abort::KIND_TIMED_OUT);
  message.mutable_abort()->set_reason(reason);
  std::vector<std::unique_ptr<Task>> sends;
  {
    const MutexLock lock(joined_mutex_);
    for (const NodeId node : joined_) {
      sends.push_back(world_.spawn("abort", [this, node, &message] { send(node, message); }));
    }
  }
  world_.sleep_for(flush_time);
  if (hung_) {
    hung_(reason);
  }
  world_.cancel(std::make_exception_ptr(TimedOut(reason)));
}

void Coordinator::send(NodeId node, const wire::FromCoordinator& message) {
  world_.transport().post(node, tags::from_coordinator, wire::encode(message));
}

void Coordinator::send_to_all(const wire::FromCoordinator& message) {
  for (const auto& [node, join] : membership_.joins()) {
    if (membership_.is_present(node)) {
      send(node, message);
    }
  }
}

}  // namespace syncopate
