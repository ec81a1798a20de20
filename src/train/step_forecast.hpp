#pragma once

#include <cstdint>
#include <deque>

#include "base/time.hpp"

namespace syncopate {

/// What the next step of a device may take at the most, learnt from the steps before: the longest time per sample of
/// the last 64 steps, times the samples of the step.
class StepForecast {
 public:
  /// A step without samples teaches nothing.
  void took(std::uint32_t samples, Duration duration);

  bool known() const { return !sample_seconds_.empty(); }
  /// Zero, if unknown.
  Duration longest(std::uint32_t samples) const;

 private:
  std::deque<double> sample_seconds_;
};

}  // namespace syncopate
