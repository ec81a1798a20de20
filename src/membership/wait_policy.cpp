#include "membership/wait_policy.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "telemetry/member_status.hpp"

namespace syncopate {
namespace {

constexpr Duration least_extension = std::chrono::milliseconds(50);
/// Time limit, after the user's request to end, of activities without a usual duration, such as a
/// first step or a checkpoint.
constexpr Duration unknown_at_end = std::chrono::seconds(10);

/// Limits the value from a worker's heartbeat to what sums of `Duration` can hold.
Duration bounded(double seconds) {
  constexpr double longest = 1e8;
  return std::isfinite(seconds) ? from_seconds(std::clamp(seconds, 0.0, longest))
                                : Duration::zero();
}

/// The usual duration of a synchronization, by the metrics of the member; 0: not known.
Duration usual_synchronization_in(const MetricValues& metrics) {
  const double seconds = metrics[Metric::communicate_seconds] + metrics[Metric::wait_seconds];
  return metrics[Metric::rounds] > 0 ? bounded(seconds / metrics[Metric::rounds])
                                     : Duration::zero();
}

}  // namespace

StepWatch::StepWatch(const Options& options, TimePoint now)
    : options_(options),
      begun_(now),
      progressed_(now),
      heard_{now, now},
      last_heard_(now),
      heard_until_(now) {
  first_heard_ = last_stepped_ = now;
  options_.wait_limit = std::max(options_.wait_limit, options_.heartbeat);
}

void StepWatch::on_heartbeat(const wire::Heartbeat& heartbeat, TimePoint now) {
  heard_until_ = heard_time(now);
  last_heard_ = now;
  program_loop_ = heartbeat.program_loop();
  if (heartbeat.step() != step_) {
    last_stepped_ = heard_until_;
  }
  const bool begins = heartbeat.computing() && (!computing_ || heartbeat.step() != step_);
  const bool ends = computing_ && !heartbeat.computing();
  standing_by_ = heartbeat.standing_by() && !heartbeat.computing();
  waiting_ = heartbeat.waiting();
  if (!std::exchange(program_waits_, heartbeat.program_waits())) {
    program_waits_since_ = heard_until_;
  }
  if (begins || ends || standing_by_) {
    begun_ = now;
    heard_.begun = heard_until_;
  }
  if (begins || heartbeat.progress() != progress_) {
    progressed_ = now;
    heard_.progressed = heard_until_;
  }
  computing_ = heartbeat.computing();
  synchronizing_ = heartbeat.phase() == phase_synchronization;
  saving_ = heartbeat.phase() == phase_snapshot;
  const MetricValues metrics = metrics_in(heartbeat);
  usual_synchronization_ = usual_synchronization_in(metrics);
  rounds_ = metrics[Metric::rounds];
  if (heartbeat.pings() != pings_) {
    pings_ = heartbeat.pings();
    unheard_since_ = heard_until_;
  }
  step_ = heartbeat.step();
  progress_ = heartbeat.progress();
  expected_ = bounded(heartbeat.expected_seconds());
}

void StepWatch::pinged(std::uint64_t number, TimePoint now) {
  if (pings_ == pinged_) {
    unheard_since_ = heard_time(now);
  }
  pinged_ = number;
}

Duration StepWatch::deaf_for(TimePoint now) const {
  const bool is_up_to_date = pings_ == 0 || pings_ == pinged_;
  return is_up_to_date ? Duration::zero() : heard_time(now) - unheard_since_;
}

void StepWatch::forgive(Duration absence, TimePoint now) {
  begun_ = std::min(begun_ + absence, now);
  progressed_ = std::min(progressed_ + absence, now);
  last_heard_ = std::min(last_heard_ + absence, now);
}

TimePoint StepWatch::due() const {
  return due({begun_, progressed_});
}

TimePoint StepWatch::due(const Moments& moments) const {
  if (!computing_) {
    return moments.begun + options_.wait_limit;
  }
  if (expected_ == Duration::zero()) {
    return moments.progressed + std::max(options_.wait_limit, options_.unknown_step);
  }
  const Duration likely = from_seconds(options_.factor * to_seconds(expected_));
  return std::max(moments.begun + std::max(options_.wait_limit, likely),
                  moments.progressed + options_.wait_limit);
}

/// Reads the heartbeat clock: after the last heartbeat, it runs on for at most the usual pause
/// between two of them.
TimePoint StepWatch::heard_time(TimePoint now) const {
  return heard_until_ + std::clamp(now - last_heard_, Duration::zero(), options_.heartbeat);
}

bool StepWatch::stands_still(TimePoint now, Duration idle_limit) const {
  return heard_time(now) >= (computing_ ? due(heard_) : heard_.begun + idle_limit);
}

/// The longest pause of a program between two of its steps, for example in a test: the program may
/// save its state at the next step.
Duration StepWatch::longest_pause_at_end() const {
  const double steps = std::max(1.0, static_cast<double>(step_));
  const double usual = to_seconds(last_stepped_ - first_heard_) / steps;
  return std::max(unknown_at_end, from_seconds(options_.factor * usual));
}

bool StepWatch::stands_still_at_end(TimePoint now, Duration patience) const {
  if (now - last_heard_ >= patience) {
    return true;
  }
  if (program_loop_ && computing_) {
    return heard_time(now) >= heard_.begun + longest_pause_at_end();
  }
  const bool known = computing_ ? expected_ > Duration::zero() : synchronizing_;
  if (!known) {
    return heard_time(now) >= (computing_ ? heard_.progressed : heard_.begun) + unknown_at_end;
  }
  const Duration usual = computing_ ? expected_ : usual_synchronization_;
  const Duration limit = std::max(patience, from_seconds(options_.factor * to_seconds(usual)));
  return heard_time(now) >= heard_.begun + limit &&
         (!computing_ || heard_time(now) >= heard_.progressed + patience);
}

void WaitPolicy::joined(NodeId worker, TimePoint now) {
  workers_.emplace(worker, Worker{StepWatch(options_, now), now});
}

void WaitPolicy::accessory_joined(NodeId node, TimePoint now) {
  accessories_.emplace(node, Worker{StepWatch(options_, now), now});
}

WaitPolicy::Worker* WaitPolicy::find(NodeId node) {
  return const_cast<Worker*>(std::as_const(*this).find(node));
}

const WaitPolicy::Worker* WaitPolicy::find(NodeId node) const {
  for (const Members* const members : {&workers_, &accessories_}) {
    if (const auto found = members->find(node); found != members->end()) {
      return &found->second;
    }
  }
  return nullptr;
}

void WaitPolicy::on_heartbeat(NodeId node, const wire::Heartbeat& heartbeat, TimePoint now) {
  if (Worker* const member = find(node)) {
    member->watch.on_heartbeat(heartbeat, now);
  }
}

void WaitPolicy::pinged(std::uint64_t number, TimePoint now) {
  for (Members* const members : {&workers_, &accessories_}) {
    for (auto& [node, member] : *members) {
      member.watch.pinged(number, now);
    }
  }
}

void WaitPolicy::forgive(Duration absence, TimePoint now) {
  for (Members* const members : {&workers_, &accessories_}) {
    for (auto& [node, member] : *members) {
      member.watch.forgive(absence, now);
      member.waits_until += absence;
    }
  }
}

void WaitPolicy::gone(NodeId node) {
  workers_.erase(node);
  accessories_.erase(node);
}

WaitPolicy::Verdict WaitPolicy::decide(const Report& report, TimePoint now) {
  if (auto missing = hanging(now); !missing.empty()) {
    return {.missing = std::move(missing), .hang = true};
  }
  const bool over = report.waited >= report.limit;
  if (auto missing = idle_of(report.awaited, now); over && !missing.empty()) {
    // A worker that has begun to push blocks the server that reports the wait, and so all others.
    return {.missing = std::move(missing), .hang = accessories_.contains(report.from)};
  }
  const auto due = report.awaited.empty() ? std::nullopt : next_due(report.from, now);
  if (due) {
    return extend(report.from, *due - now, now);
  }
  return over ? give_up(report, now) : extend(report.from, report.limit - report.waited, now);
}

/// Judges a wait that has reached its limit and for which no worker is to blame. A server that
/// lives may itself wait for a worker that hangs. Such a worker is found without this report, so
/// the server gets the limit once more.
WaitPolicy::Verdict WaitPolicy::judge_servers(const Report& report, TimePoint now) {
  const Duration longest = report.limit + options_.wait_limit;
  return report.waited < longest ? extend(report.from, longest - report.waited, now)
                                 : Verdict{.missing = report.servers};
}

/// A wait for workers that are all gone ends by itself, once the group or the server learns of it.
WaitPolicy::Verdict WaitPolicy::give_up(const Report& report, TimePoint now) {
  std::vector<NodeId> awaited = report.awaited;
  std::erase_if(awaited, [this](NodeId node) { return !workers_.contains(node); });
  if (awaited.empty() && !report.awaited.empty()) {
    return extend(report.from, options_.wait_limit, now);
  }
  std::vector<NodeId> idle;
  if (!awaited.empty()) {
    idle = idle_of(workers_but(report.from), now);
  }
  if (idle.empty() && !report.servers.empty()) {
    return judge_servers(report, now);
  }
  return {.missing = idle.empty() ? std::move(awaited) : std::move(idle)};
}

std::vector<NodeId> WaitPolicy::workers_but(NodeId one) const {
  std::vector<NodeId> others;
  for (const auto& [node, worker] : workers_) {
    if (node != one) {
      others.push_back(node);
    }
  }
  return others;
}

const StepWatch* WaitPolicy::watch(NodeId node) const {
  const Worker* const member = find(node);
  return member == nullptr ? nullptr : &member->watch;
}

/// A worker that neither computes nor stands by gets half of a limit more: by then it reports a
/// wait, or the server that it waits for is found to hang.
std::vector<NodeId> WaitPolicy::hanging_alone(const Idle& idle, TimePoint now) const {
  const Duration idle_limit = std::max(options_.wait_limit, options_.heartbeat);
  const Duration starting = idle.starting ? options_.unknown_step : Duration::zero();
  std::vector<NodeId> nodes;
  const auto add = [&](const Members& members, Duration limit, bool also_idle) {
    for (const auto& [node, member] : members) {
      const bool still = (also_idle || member.watch.is_computing()) && member.waits_until <= now &&
                         member.watch.stands_still(now, std::max(limit, starting));
      if (still || member.watch.deaf_for(now) >= idle_limit) {
        nodes.push_back(node);
      }
    }
  };
  add(accessories_, idle_limit, true);
  add(workers_, idle_limit + idle_limit / 2, idle.workers || idle.starting);
  return nodes;
}

bool WaitPolicy::servers_stand_by(TimePoint now) const {
  return std::ranges::all_of(accessories_, [now](const auto& entry) {
    const StepWatch& watch = entry.second.watch;
    return watch.stands_by() && watch.is_heard(now) && !watch.is_deaf(now);
  });
}

void WaitPolicy::end_expected() {
  for (auto& [node, worker] : workers_) {
    worker.watch.end_expected();
  }
}

namespace {

/// The state of a member after the user's request to end.
enum class AtEnd {
  hangs,
  idle,   ///< makes no progress, and may wait for another member
  comes,  ///< may reach its end by itself
  waits,  ///< for the others, in the usual way
};

AtEnd at_end(const StepWatch& watch, bool is_accessory, Duration patience, TimePoint now) {
  const bool serves = is_accessory && !watch.is_computing() && !watch.saves();
  const bool still =
      serves ? watch.stands_still(now, patience) : watch.stands_still_at_end(now, patience);
  const bool elsewhere = watch.waits_in_program(now, patience);
  const bool ignores = !is_accessory && watch.ignores_end();
  if ((still && watch.is_computing() && !elsewhere) || ignores || watch.deaf_for(now) >= patience) {
    return AtEnd::hangs;
  }
  if (still || elsewhere) {
    return AtEnd::idle;
  }
  const bool comes = watch.is_computing() ? !watch.steps_on_alone() : !watch.stands_by();
  return comes ? AtEnd::comes : AtEnd::waits;
}

}  // namespace

std::vector<NodeId> WaitPolicy::preventing_end(Duration patience, TimePoint now) const {
  std::map<AtEnd, std::vector<NodeId>> nodes;
  for (const Members* const members : {&accessories_, &workers_}) {
    for (const auto& [node, member] : *members) {
      nodes[at_end(member.watch, members == &accessories_, patience, now)].push_back(node);
    }
  }
  if (!nodes[AtEnd::hangs].empty()) {
    return nodes[AtEnd::hangs];
  }
  return nodes[AtEnd::comes].empty() ? culprits_of(nodes[AtEnd::idle]) : std::vector<NodeId>{};
}

/// Returns those of several members without progress for which the others wait.
std::vector<NodeId> WaitPolicy::culprits_of(std::vector<NodeId> idle) const {
  const auto waits = [this](NodeId node) { return find(node)->watch.waits(); };
  if (!std::ranges::all_of(idle, waits)) {
    std::erase_if(idle, waits);
  }
  std::vector<NodeId> culprits;
  std::ranges::copy_if(idle, std::back_inserter(culprits),
                       [this](NodeId node) { return accessories_.contains(node); });
  if (!culprits.empty()) {
    return culprits;
  }
  std::uint64_t earliest = std::numeric_limits<std::uint64_t>::max();
  for (const NodeId node : idle) {
    earliest = std::min(earliest, find(node)->watch.step());
  }
  std::ranges::copy_if(idle, std::back_inserter(culprits),
                       [&](NodeId node) { return find(node)->watch.step() == earliest; });
  return culprits;
}

std::optional<NodeId> WaitPolicy::blame(NodeId reporter, std::optional<NodeId> awaited,
                                        TimePoint now) const {
  const auto does_nothing = [&](NodeId node) {
    const Worker* const member = find(node);
    return member != nullptr && node != reporter && member->waits_until <= now &&
           !member->watch.waited_for(now);
  };
  std::vector<NodeId> hung = hanging_alone({.workers = true}, now);
  std::erase(hung, reporter);
  if (!hung.empty()) {
    return hung.front();
  }
  if (awaited && does_nothing(*awaited)) {
    return awaited;
  }
  const auto other =
      std::ranges::find_if(workers_, [&](const auto& entry) { return does_nothing(entry.first); });
  return other == workers_.end() ? std::nullopt : std::optional(other->first);
}

std::vector<NodeId> WaitPolicy::hanging(TimePoint now) const {
  const Duration deafness = std::max(options_.wait_limit, options_.heartbeat) / 2;
  std::vector<NodeId> nodes;
  for (const auto& [node, worker] : workers_) {
    if (worker.watch.hangs(now) || worker.watch.deaf_for(now) >= deafness) {
      nodes.push_back(node);
    }
  }
  return nodes;
}

/// Returns the workers of `nodes` that are past their due time and report no wait themselves.
std::vector<NodeId> WaitPolicy::idle_of(const std::vector<NodeId>& nodes, TimePoint now) const {
  std::vector<NodeId> idle;
  std::ranges::copy_if(nodes, std::back_inserter(idle), [&](NodeId node) {
    const auto found = workers_.find(node);
    return found != workers_.end() && !found->second.watch.waited_for(now) &&
           found->second.waits_until <= now;
  });
  return idle;
}

/// The first due time of the workers that the reporter may wait for.
std::optional<TimePoint> WaitPolicy::next_due(NodeId reporter, TimePoint now) const {
  std::optional<TimePoint> next;
  for (const auto& [node, worker] : workers_) {
    if (node != reporter && worker.watch.waited_for(now)) {
      next = std::min(next.value_or(worker.watch.due()), worker.watch.due());
    }
  }
  return next;
}

/// Extends a wait by at most half of the limit: so it is reported at least twice in its limit, and
/// no verdict is much too late.
WaitPolicy::Verdict WaitPolicy::extend(NodeId reporter, Duration wanted, TimePoint now) {
  const Duration longest = std::max(options_.wait_limit / 2, least_extension);
  const Duration more = std::clamp(wanted, least_extension, longest);
  if (Worker* const member = find(reporter)) {
    member->waits_until = now + more + options_.heartbeat;
  }
  return {.more = more};
}

}  // namespace syncopate
