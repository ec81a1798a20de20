#pragma once

#include "base/time.hpp"
#include "job/spec/config.hpp"

namespace syncopate {

/// Says when something that happens every so often is due. Pure: it compares two moments of
/// training, so that a resumed run does at each step what an uninterrupted one does.
class PeriodicTrigger {
 public:
  /// A moment of training, between two steps.
  struct Moment {
    double step = 0;  ///< steps done; a fraction where workers are at different steps
    Duration training{};
  };

  PeriodicTrigger(Every every, double steps_per_epoch);

  /// Whether a multiple of the period lies in (before, after].
  bool due(const Moment& before, const Moment& after) const;

 private:
  double periods(const Moment& moment) const;

  Every every_;
  double steps_per_epoch_;
};

}  // namespace syncopate
