#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "membership/step_watch.hpp"

namespace syncopate {

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
class WaitJudge {
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

  explicit WaitJudge(const Options& options) : options_(options) {}

  void joined(NodeId worker, TimePoint now);
  void heard(NodeId worker, const wire::Heartbeat& heartbeat, TimePoint now);
  /// It has left, or was dropped: the others wait for it no more.
  void gone(NodeId worker);

  Verdict judge(const Report& report, TimePoint now);

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
