#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "runtime/waits.hpp"
#include "wire/control.pb.h"

namespace syncopate {

/// Notices that a loop did not run: a disk or a debugger held it, or its process was suspended. A
/// pure state machine.
///
/// A loop that judges the silence of others must not count the time in which it did not listen.
class AbsenceWatch {
 public:
  /// Turns of the loop begin at most `usual` apart; a much longer gap is an absence.
  explicit AbsenceWatch(Duration usual) : usual_(usual) {}

  /// Call this when a turn begins. Returns the time since the previous turn if it was an absence,
  /// else zero.
  Duration turn(TimePoint now) {
    const Duration since = now - last_.value_or(now);
    last_ = now;
    return since > usual_ + tolerance ? since : Duration::zero();
  }

 private:
  /// Time that a busy machine, or the work of one turn, may take.
  static constexpr Duration tolerance = std::chrono::seconds(1);

  Duration usual_;
  std::optional<TimePoint> last_;
};

/// The heartbeats of a job's members: which members are present, and which are silent. A pure state
/// machine.
///
/// Order:  heartbeats in the order of their arrival.
/// Thread: one.
class Liveness {
 public:
  enum class Standing { present, left, dropped };

  explicit Liveness(const AdaptiveLimit::Options& silence) : silence_(silence) {}

  /// The node is present from now on.
  void joined(NodeId node, TimePoint now);
  /// Has no effect for a node that has not joined.
  void on_heartbeat(NodeId node, const wire::Heartbeat& heartbeat, TimePoint now);
  /// The listener was absent for this long: this time does not count as silence.
  void forgive(Duration absence, TimePoint now);
  /// A node that has joined is no longer present.
  void gone(NodeId node, Standing standing) { lives_.at(node).standing = standing; }

  /// True if the node has joined, and neither left nor been dropped.
  bool is_present(NodeId node) const;
  bool was_dropped(NodeId node) const { return lives_.at(node).standing == Standing::dropped; }
  bool any_present() const;
  /// The nodes that have joined and sent no heartbeat for longer than is usual for them.
  std::vector<NodeId> silent(TimePoint now) const;
  /// "last heard 1.2 s ago", or "never heard".
  std::string last_heard(NodeId node, TimePoint now) const;
  /// "last heard 1.2 s ago, in backward of step 812", or "never heard".
  std::string last_sign(NodeId node, TimePoint now) const;

 private:
  struct Life {
    TimePoint last_heard;
    AdaptiveLimit silence;
    wire::Heartbeat last{};
    Standing standing = Standing::present;
  };

  AdaptiveLimit::Options silence_;
  std::map<NodeId, Life> lives_;
};

/// The coordinator's wait for the last evaluations, once every other member is gone: it ends when
/// the evaluator has made no progress for `limit`. A pure state machine.
///
/// Order:  heartbeats in the order of their arrival.
/// Thread: one.
class EvaluationWait {
 public:
  explicit EvaluationWait(Duration limit) : limit_(limit) {}

  /// `progress`: the counter in the evaluator's heartbeat.
  void on_heartbeat(std::uint64_t progress, TimePoint now) {
    if (progress != progress_) {
      progress_ = progress;
      progressed_ = now;
    }
  }

  /// `alone`: only the evaluator is left.
  bool is_over(bool alone, TimePoint now) {
    if (!alone) {
      alone_since_.reset();
      return false;
    }
    alone_since_ = alone_since_.value_or(now);
    return now - std::max(*alone_since_, progressed_) > limit_;
  }

  /// The coordinator could not read heartbeats during this absence: it does not count.
  void forgive(Duration absence, TimePoint now) {
    progressed_ = std::min(progressed_ + absence, now);
    if (alone_since_) {
      alone_since_ = std::min(*alone_since_ + absence, now);
    }
  }

  Duration limit() const { return limit_; }

 private:
  Duration limit_;
  std::uint64_t progress_ = 0;
  TimePoint progressed_{};
  std::optional<TimePoint> alone_since_;
};

}  // namespace syncopate
