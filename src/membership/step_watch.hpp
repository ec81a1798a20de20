#pragma once

#include <cstdint>

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

  void heard(const wire::Heartbeat& heartbeat, TimePoint now);

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

}  // namespace syncopate
