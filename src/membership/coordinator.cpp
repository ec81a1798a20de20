#include "membership/coordinator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/errors.hpp"
#include "membership/turn_watch.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

constexpr Duration tick = std::chrono::milliseconds(100);
constexpr Duration closing_limit = std::chrono::seconds(2);
/// The event loop turns ten times a second, but may write to a disk in between.
constexpr Duration least_hang_limit = std::chrono::seconds(10);
/// For the last messages of a coordinator that hangs to leave.
constexpr Duration farewell = std::chrono::milliseconds(500);

}  // namespace

Coordinator::Coordinator(World& world, JobObserver& observer, Options options)
    : world_(world),
      observer_(observer),
      membership_(options.membership, world.now()),
      pacing_(std::move(options.pacing)),
      description_(std::move(options.description)),
      name_(std::move(options.name)),
      hung_(std::move(options.hung)),
      hang_limit_(std::max(options.membership.waits.wait_limit, least_hang_limit)) {}

void Coordinator::run() {
  TurnWatch watch(world_, {.limit = hang_limit_,
                           .stands_still = [this](Duration still) { end_hung_job(still); }});
  while (!done_) {
    watch.turned();
    carry_out(next_event());
    carry_out(membership_.time_passed(world_.now()));
    if (pacing_) {
      pacing_->tick();
    }
    stop_if_requested();
  }
  world_.transport().close(world_.now() + closing_limit);
}

Decisions Coordinator::next_event() {
  try {
    const TimePoint now = world_.now();
    const TimePoint next = pacing_ ? pacing_->next_tick() : TimePoint{};
    const TimePoint until = next > now ? std::min(next, now + tick) : now + tick;
    return decode_and_handle(world_.transport().receive(std::nullopt, tags::to_coordinator, until));
  } catch (const TimedOut&) {
    return {};  // the tick
  } catch (const PeerLost& loss) {
    return membership_.lost(loss.peer(), world_.now());
  }
}

Decisions Coordinator::decode_and_handle(const Message& message) {
  try {
    return handle(message.from, wire::decode_to_coordinator(message.payload));
  } catch (const ProtocolError& error) {
    return membership_.failed(message.from, to_abort(error));
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
        stop_when_complete();
      }
      return {};
    case wire::ToCoordinator::kEnquire: return membership_.enquired(from, message.enquire());
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

Decisions Coordinator::handle_arrival(NodeId from, const wire::Arrived& arrived) {
  if (arrived.restarts()) {
    restart_barrier_ = std::max(restart_barrier_, arrived.barrier());
  }
  if (pacing_) {
    try {
      pacing_->arrived(arrived);
    } catch (const ConfigError& error) {
      return membership_.refused(error.what());
    }
  }
  return membership_.arrived(from, arrived.barrier());
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
  send_to_all(to_others);
  // A worker that still runs must not go on by itself.
  wire::FromCoordinator to_worker;
  to_worker.mutable_abort()->set_kind(wire::Abort::KIND_PEER_LOST);
  to_worker.mutable_abort()->set_node(drop.member.node.value);
  to_worker.mutable_abort()->set_reason("the job goes on without " + drop.reason);
  send(drop.member.node, to_worker);
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
  world_.transport().close(world_.now() + closing_limit);
  std::rethrow_exception(to_error(end.abort));
}

void Coordinator::act(const JobDone& /*done*/) {
  done_ = true;
}

void Coordinator::stop_if_requested() {
  const auto reason = observer_.reason_to_stop();
  if (reason && observer_.end_is_urgent()) {
    carry_out(membership_.end_requested(world_.now()));
  }
  if (!reason || stopping_ || !membership_.view()) {
    return;
  }
  stopping_ = true;
  wire::FromCoordinator message;
  message.mutable_stop()->set_reason(*reason);
  send_to_all(message);
}

/// The samples of the job are complete: every worker stops at once, and cancels its step in
/// progress.
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

/// Called while the task of `run` does nothing. A message that is posted needs no other task of
/// this process to leave.
void Coordinator::end_hung_job(Duration still) {
  const std::string reason =
      fmt::format("{} hangs: its main task has not gone on for {:.0f} s, though its process lives",
                  name_, to_seconds(still));
  wire::FromCoordinator message;
  message.mutable_abort()->set_kind(wire::Abort::KIND_TIMED_OUT);
  message.mutable_abort()->set_reason(reason);
  {
    const MutexLock lock(joined_mutex_);
    for (const NodeId node : joined_) {
      send(node, message);
    }
  }
  world_.sleep_for(farewell);
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
