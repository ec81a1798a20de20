#pragma once

#include <optional>

#include "base/time.hpp"
#include "spec/config.hpp"

namespace syncopate {

/// The training clock: seconds since the first step, without the pauses for evaluation and
/// checkpoints.
///
/// Every worker takes off the same pauses, so that the clocks of all show the same time.
class TrainingClock {
 public:
  /// Starts at once, at `reading`: 0, or the last reading of a run that is resumed. `clock` must
  /// outlive this.
  explicit TrainingClock(const Clock& clock, Duration reading = Duration::zero())
      : clock_(clock), start_(clock.now() - reading) {}

  /// The reading. It goes back by each pause that is taken off.
  Duration now() const { return stopped_ ? *stopped_ : clock_.now() - start_; }
  /// The moment at which it will show `reading`, if nothing is taken off until then.
  TimePoint when(Duration reading) const { return start_ + reading; }
  void take_off(Duration pause) { start_ += pause; }
  /// Stops the clock at its reading at `moment`; pauses do not change it any more. Only the first
  /// call has an effect.
  void stop(TimePoint moment) { stopped_ = stopped_.value_or(moment - start_); }

 private:
  const Clock& clock_;
  TimePoint start_;  ///< moved forward by each pause
  std::optional<Duration> stopped_{};
};

/// Decides when something periodic is due. Pure: it compares moments of training, so that a resumed
/// run does at each step what an uninterrupted one does.
class PeriodicTrigger {
 public:
  /// A moment of training, between two steps.
  struct Moment {
    double step = 0;  ///< steps done; a fraction if workers are at different steps
    Duration training{};
  };

  PeriodicTrigger(Every every, double steps_per_epoch)
      : every_(every), steps_per_epoch_(steps_per_epoch) {}

  /// Counts from `moment` on.
  void restart(const Moment& moment) { last_ = periods(moment); }
  /// True if a multiple of the period lies after the moment of the previous call, and not after
  /// `moment`.
  bool due(const Moment& moment);

  bool is_active() const { return every_.unit != Every::Unit::never; }

 private:
  double periods(const Moment& moment) const;

  Every every_;
  double steps_per_epoch_;
  double last_ = 0;  ///< whole periods until the previous call
};

}  // namespace syncopate
