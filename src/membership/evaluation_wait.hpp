#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/time.hpp"

namespace syncopate {

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
