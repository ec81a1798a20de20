#include "membership/wait_policy.hpp"

#include <algorithm>
#include <cmath>

namespace syncopate {
namespace {

constexpr Duration least_extension = std::chrono::milliseconds(50);

/// Limits the value from a worker's heartbeat to what sums of `Duration` can hold.
Duration bounded(double seconds) {
  constexpr double longest = 1e8;
  return std::isfinite(seconds) ? from_seconds(std::clamp(seconds, 0.0, longest))
                                : Duration::zero();
}

}  // namespace

StepWatch::StepWatch(const Options& options, TimePoint now)
    : options_(options), begun_(now), progressed_(now) {
  options_.wait_limit = std::max(options_.wait_limit, options_.heartbeat);
}

void StepWatch::on_heartbeat(const wire::Heartbeat& heartbeat, TimePoint now) {
  const bool begins = heartbeat.computing() && (!computing_ || heartbeat.step() != step_);
  const bool ends = computing_ && !heartbeat.computing();
  if (begins || ends) {
    begun_ = now;
  }
  if (begins || heartbeat.progress() != progress_) {
    progressed_ = now;
  }
  computing_ = heartbeat.computing();
  step_ = heartbeat.step();
  progress_ = heartbeat.progress();
  expected_ = bounded(heartbeat.expected_seconds());
}

void StepWatch::forgive(Duration absence, TimePoint now) {
  begun_ = std::min(begun_ + absence, now);
  progressed_ = std::min(progressed_ + absence, now);
}

TimePoint StepWatch::due() const {
  if (!computing_) {
    return begun_ + options_.wait_limit;
  }
  if (expected_ == Duration::zero()) {
    return progressed_ + std::max(options_.wait_limit, options_.unknown_step);
  }
  const Duration likely = from_seconds(options_.factor * to_seconds(expected_));
  return std::max(begun_ + std::max(options_.wait_limit, likely),
                  progressed_ + options_.wait_limit);
}
void WaitPolicy::joined(NodeId worker, TimePoint now) {
  workers_.emplace(worker, Worker{StepWatch(options_, now), now});
}

void WaitPolicy::on_heartbeat(NodeId worker, const wire::Heartbeat& heartbeat, TimePoint now) {
  const auto found = workers_.find(worker);
  if (found != workers_.end()) {
    found->second.watch.on_heartbeat(heartbeat, now);
  }
}

void WaitPolicy::forgive(Duration absence, TimePoint now) {
  for (auto& [node, worker] : workers_) {
    worker.watch.forgive(absence, now);
    worker.waits_until += absence;
  }
}

void WaitPolicy::gone(NodeId worker) {
  workers_.erase(worker);
}

WaitPolicy::Verdict WaitPolicy::decide(const Report& report, TimePoint now) {
  if (auto missing = hanging(now); !missing.empty()) {
    return {.missing = std::move(missing), .hang = true};
  }
  const bool over = report.waited >= report.limit;
  if (auto missing = idle_of(report.awaited, now); over && !missing.empty()) {
    return {.missing = std::move(missing)};
  }
  const auto due = report.awaited.empty() ? std::nullopt : next_due(report.from, now);
  if (due) {
    return extend(report.from, *due - now, now);
  }
  return over ? give_up(report, now) : extend(report.from, report.limit - report.waited, now);
}

/// A wait for workers that are all gone ends by itself, once the group or the server knows.
WaitPolicy::Verdict WaitPolicy::give_up(const Report& report, TimePoint now) {
  std::vector<NodeId> awaited = report.awaited;
  std::erase_if(awaited, [this](NodeId node) { return !workers_.contains(node); });
  if (awaited.empty()) {
    return report.awaited.empty() ? Verdict{} : extend(report.from, options_.wait_limit, now);
  }
  std::vector<NodeId> others;
  for (const auto& [node, worker] : workers_) {
    if (node != report.from) {
      others.push_back(node);
    }
  }
  std::vector<NodeId> idle = idle_of(others, now);
  return {.missing = idle.empty() ? std::move(awaited) : std::move(idle)};
}

const StepWatch* WaitPolicy::watch(NodeId worker) const {
  const auto found = workers_.find(worker);
  return found == workers_.end() ? nullptr : &found->second.watch;
}

std::vector<NodeId> WaitPolicy::hanging(TimePoint now) const {
  std::vector<NodeId> nodes;
  for (const auto& [node, worker] : workers_) {
    if (worker.watch.hangs(now)) {
      nodes.push_back(node);
    }
  }
  return nodes;
}

/// Those of `nodes` that are past their due time and report no wait themselves.
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

/// A wait is reported at least twice in its limit, so that no verdict is much too late.
WaitPolicy::Verdict WaitPolicy::extend(NodeId reporter, Duration wanted, TimePoint now) {
  const Duration longest = std::max(options_.wait_limit / 2, least_extension);
  const Duration more = std::clamp(wanted, least_extension, longest);
  if (const auto found = workers_.find(reporter); found != workers_.end()) {
    found->second.waits_until = now + more + options_.heartbeat;
  }
  return {.more = more};
}

}  // namespace syncopate
