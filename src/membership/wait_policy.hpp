#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "wire/control.hpp"

namespace syncopate {

/// How long the others wait for one worker, by its heartbeats. A pure state machine.
///
/// The others wait for a worker that computes until `due`:
///
///     max(begun + max(wait_limit, factor · expected), progressed + wait_limit)    expected > 0
///     progressed + max(wait_limit, unknown_step)                                 expected = 0
///
/// `begun` is the moment at which the current step began; `progressed` the last one at which the
/// worker's progress counter grew, or `begun`; `expected` the time that the worker's device profile
/// and its earlier steps make likely. A worker that does not compute synchronizes, starts up or
/// writes a checkpoint: the others wait until wait_limit after its last step. A worker that
/// computes after `due` hangs.
///
/// Order:  heartbeats in the order of their arrival.
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

  /// The coordinator was absent for this long, and has not heard of progress in that time.
  void forgive(Duration absence, TimePoint now);

  TimePoint due() const;
  bool waited_for(TimePoint now) const { return now < due(); }
  /// The worker computes, but longer than is likely.
  bool hangs(TimePoint now) const { return computing_ && !waited_for(now); }
  Duration expected() const { return expected_; }
  /// When the current step began, or the pause after the last one.
  TimePoint begun() const { return begun_; }

 private:
  Options options_;
  bool computing_ = false;
  std::uint64_t step_ = 0;
  std::uint64_t progress_ = 0;
  Duration expected_{};
  TimePoint begun_;  ///< the current step, or the pause after the last one
  TimePoint progressed_;
};

/// Decides about the long waits that workers report: a wait continues, or some workers are missing.
/// A pure state machine of the coordinator, beside `Membership`.
///
/// In this order:
/// 1. A worker that hangs (`StepWatch`) is missing, whichever worker the reporter waits for.
/// 2. A wait has taken its own limit: a worker is missing if the reporter waits for it, it is past
///    its due time, and it reports no wait itself.
/// 3. Another worker is not past its due time: the wait continues. The reporter may wait for that
///    worker through others, as in a ring. A wait for a server that waits for no worker continues
///    until its limit.
/// 4. Otherwise every worker is missing that reports no wait itself; if there is none, those that
///    the reporter waits for. If a server waits for no worker, none is missing.
///
/// Liveness: every wait ends or is decided: wait_limit after the last worker has stopped computing
///           at the latest, or when one hangs.
/// Thread:   one.
class WaitPolicy {
 public:
  using Options = StepWatch::Options;

  struct Report {
    NodeId from;
    std::vector<NodeId> awaited{};  ///< workers; empty: the reporter waits for a server alone
    Duration waited{};
    Duration limit{};  ///< of the wait, if no worker computes
  };

  struct Verdict {
    std::optional<Duration> more{};  ///< the wait continues; report it again after this
    std::vector<NodeId> missing{};   ///< workers, if the wait does not continue
    bool hang = false;               ///< the missing workers hang in their steps
  };

  explicit WaitPolicy(const Options& options) : options_(options) {}

  void joined(NodeId worker, TimePoint now);
  void on_heartbeat(NodeId worker, const wire::Heartbeat& heartbeat, TimePoint now);
  /// As `StepWatch::forgive`, for all workers.
  void forgive(Duration absence, TimePoint now);
  /// The worker has left, or was dropped: the others wait for it no more.
  void gone(NodeId worker);

  Verdict decide(const Report& report, TimePoint now);

  /// Null for a node that is no worker, or is gone.
  const StepWatch* watch(NodeId worker) const;

 private:
  struct Worker {
    StepWatch watch;
    TimePoint waits_until;  ///< by then it reports its wait again
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
