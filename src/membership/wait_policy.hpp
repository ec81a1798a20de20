#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "wire/control.hpp"

namespace syncopate {

/// How long the others wait for one worker, judged by its heartbeats. A pure state machine.
///
/// A worker that computes is waited for until `due`:
///
///     max(begun + max(wait_limit, factor · expected), progressed + wait_limit)    expected > 0
///     progressed + max(wait_limit, unknown_step)                                 expected = 0
///
/// `begun` is the moment at which the step in hand began, `progressed` the last one at which the worker's progress
/// counter grew, or `begun`. `expected` is what the worker's device profile and its earlier steps make likely. One
/// that does not compute (it synchronizes, starts up, writes a checkpoint) is waited for until wait_limit after it
/// stopped. A worker past `due` hangs if it computes.
///
/// Order:  heartbeats in the order in which they came.
/// Thread: one.
class StepWatch {
 public:
  struct Options {
    Duration wait_limit = std::chrono::seconds(60);
    double factor = 20;
    Duration unknown_step =
        std::chrono::minutes(10);                  ///< without progress, where nothing is expected
    Duration heartbeat = std::chrono::seconds(1);  ///< no limit is shorter: heartbeats come late
  };

  StepWatch(const Options& options, TimePoint now);

  void on_heartbeat(const wire::Heartbeat& heartbeat, TimePoint now);

  TimePoint due() const;
  bool waited_for(TimePoint now) const { return now < due(); }
  /// It computes, but longer than is likely.
  bool hangs(TimePoint now) const { return computing_ && !waited_for(now); }
  Duration expected() const { return expected_; }
  /// Of the step in hand, or since the last one.
  TimePoint begun() const { return begun_; }

 private:
  Options options_;
  bool computing_ = false;
  std::uint64_t step_ = 0;
  std::uint64_t progress_ = 0;
  Duration expected_{};
  TimePoint begun_;  ///< the step in hand, or the pause since the last one
  TimePoint progressed_;
};

/// Judges the long waits that workers report: whether one goes on, or which workers are missing. A pure state
/// machine of the coordinator, beside `Membership`.
///
/// In this order:
/// 1. A worker that hangs (`StepWatch`) is missing, whatever the reporter waits for.
/// 2. A wait that has taken its own limit: a worker is missing that the reporter waits for, that is no longer
///    waited for, and that reports no wait itself.
/// 3. While another worker is waited for, the wait goes on. It may wait for that one through others, as in a ring.
///    The wait for a server that waits for no worker goes on until its limit.
/// 4. Otherwise every worker is missing that reports no wait itself; if there is none, those that the reporter waits
///    for. Where a server waits for no worker, none is.
///
/// Liveness: every wait ends, or a verdict comes: wait_limit after the last worker has stopped to compute at the
///           latest, or when one hangs.
/// Thread:   one.
class WaitPolicy {
 public:
  using Options = StepWatch::Options;

  struct Report {
    NodeId from;
    std::vector<NodeId> awaited{};  ///< workers; empty: it waits for a server alone
    Duration waited{};
    Duration limit{};  ///< of the wait, where no worker computes
  };

  struct Verdict {
    std::optional<Duration> more{};  ///< the wait goes on, and is to be reported again after this
    std::vector<NodeId> missing{};   ///< otherwise
    bool hang = false;               ///< the missing ones hang in their steps
  };

  explicit WaitPolicy(const Options& options) : options_(options) {}

  void joined(NodeId worker, TimePoint now);
  void on_heartbeat(NodeId worker, const wire::Heartbeat& heartbeat, TimePoint now);
  /// It has left, or was dropped: the others wait for it no more.
  void gone(NodeId worker);

  Verdict decide(const Report& report, TimePoint now);

  /// Null for a node that is no worker, or gone.
  const StepWatch* watch(NodeId worker) const;

 private:
  struct Worker {
    StepWatch watch;
    TimePoint waits_until;  ///< it has reported a wait, and will report it again by then
  };

  std::vector<NodeId> hanging(TimePoint now) const;
  std::vector<NodeId> idle_of(const std::vector<NodeId>& nodes, TimePoint now) const;
  Verdict give_up(const Report& report, TimePoint now);
  std::optional<TimePoint> next_due(NodeId reporter, TimePoint now) const;
  Verdict extend(NodeId reporter, Duration wanted, TimePoint now);

  Options options_;
  std::map<NodeId, Worker> workers_;
};

}  // namespace syncopate
