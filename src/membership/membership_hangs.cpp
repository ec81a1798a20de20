// Decides about members whose heartbeats arrive but which make no progress.
#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "membership/membership.hpp"
#include "runtime/member_ends.hpp"

namespace syncopate {

std::optional<std::uint64_t> Membership::next_ping(TimePoint now) {
  if (ended_ || !view_ || now < next_ping_) {
    return std::nullopt;
  }
  next_ping_ = now + options_.ping_every;
  wait_policy_.pinged(++pings_, now);
  return pings_;
}

Decisions Membership::judge_hangs(TimePoint now) {
  if (ended_ || !view_) {
    return {};
  }
  if (end_requested_) {
    if (Decisions end = judge_requested_end(now); !end.empty()) {
      return end;
    }
  }
  if (Decisions end = judge_mutual_wait(now); !end.empty()) {
    return end;
  }
  Decisions decisions = judge_late_programs();
  const WaitPolicy::Idle idle{.workers = training_ && options_.judges_idle_workers,
                              .starting = !training_};
  for (const NodeId node : wait_policy_.hanging_alone(idle, now)) {
    append(decisions,
           blaming({node}, go_on_or_end(wire::Abort::KIND_TIMED_OUT, hang_of(node, now), node)));
  }
  return decisions;
}

Decisions Membership::judge_late_programs() {
  Decisions decisions;
  for (const LatePrograms::Late& late : late_programs_.take_news()) {
    decisions.push_back(Note{fmt::format(
        "{} has taken no step for {:.0f} s since step {}, while others wait or go on; the job goes "
        "on without it, or ends, in {:.0f} s",
        name_of(late.node), to_seconds(late.outside), late.step, to_seconds(late.left))});
  }
  for (const LatePrograms::Late& late : late_programs_.given_up()) {
    const std::string reason =
        member_ends::takes_no_step(name_of(late.node), late.outside, late.step);
    append(decisions,
           blaming({late.node}, go_on_or_end(wire::Abort::KIND_TIMED_OUT, reason, late.node)));
  }
  return decisions;
}

/// Decides nothing while a server is busy, because a step may wait for that server.
Decisions Membership::judge_mutual_wait(TimePoint now) {
  const Duration patience = end_requested_
                                ? options_.end_patience
                                : std::max(options_.waits.wait_limit / 3, options_.waits.heartbeat);
  const auto found = mutual_wait_.found(patience, now);
  if (!found || !wait_policy_.servers_stand_by(now)) {
    return {};
  }
  const std::string_view where =
      found->at_end ? "at the end of its loop, after" : "in the step after";
  return end(
      wire::Abort::KIND_CONFIG,
      fmt::format(
          "{} waits in {} of its program, and {} waits for it {} step {}, both for {:.1f} s; "
          "every worker calls the same collectives between the same steps, and after an "
          "align where workers take different numbers of steps",
          name_of(found->in_collective), found->operation, name_of(found->elsewhere), where,
          found->step, to_seconds(found->waited)),
      found->in_collective);
}

/// Describes the hang of a member, with the wait of another member for it, if there is one.
std::string Membership::hang_of(NodeId node, TimePoint now) const {
  const bool awaited = open_wait_ && open_wait_->reporter != node &&
                       is_present(open_wait_->reporter) &&
                       now - open_wait_->when <= options_.waits.wait_limit;
  if (!awaited) {
    return member_ends::hangs(name_of(node), last_sign_of(node, now));
  }
  wire::Missing report = open_wait_->report;
  report.set_waited_seconds(report.waited_seconds() + to_seconds(now - open_wait_->when));
  return reason_of(open_wait_->reporter, report, {node}, now);
}

Decisions Membership::end_requested(TimePoint now) {
  if (ended_) {
    return {};
  }
  if (!view_) {
    return end(wire::Abort::KIND_FAILURE,
               fmt::format("the job was ended while it waited for {}", admission_.absent()));
  }
  if (!end_requested_) {
    end_requested_ = now;
    next_ping_ = now;
  }
  admission_.end();
  return {};
}

/// Ends a job that does not reach the end that the user has requested, without the rounds since its
/// last checkpoint.
Decisions Membership::judge_requested_end(TimePoint now) {
  if (now - *end_requested_ < options_.end_patience) {
    return {};
  }
  if (!std::exchange(end_expected_, true)) {
    wait_policy_.end_expected();
  }
  const std::vector<NodeId> still = wait_policy_.preventing_end(options_.end_patience, now);
  if (still.empty()) {
    return {};
  }
  return blaming(
      still, end(wire::Abort::KIND_TIMED_OUT,
                 fmt::format("ended as requested, without the rounds since the last checkpoint, "
                             "since it does not come to its end: {}",
                             signs_of(still, now)),
                 still.front()));
}

std::string Membership::last_sign_of(NodeId node, TimePoint now) const {
  const StepWatch* const watch = wait_policy_.watch(node);
  std::string sign = liveness_.last_sign(node, now);
  if (watch != nullptr && watch->is_deaf(now)) {
    return fmt::format("{}, without taking a message for {:.1f} s", sign,
                       to_seconds(watch->deaf_for(now)));
  }
  if (watch == nullptr || watch->stands_by() || (!end_requested_ && watch->waited_for(now))) {
    return sign;
  }
  const std::string since = fmt::format("{} for {:.1f} s", sign, to_seconds(now - watch->begun()));
  return watch->is_computing() && watch->expected() > Duration::zero()
             ? fmt::format("{} ({:.3g} s expected at the most)", since,
                           to_seconds(watch->expected()))
             : since;
}

}  // namespace syncopate
