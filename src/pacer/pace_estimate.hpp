#pragma once

#include <cstdint>
#include <deque>

#include "base/time.hpp"
#include "wire/control.pb.h"

namespace syncopate {

/// Estimates how long a step of a device takes, from the steps that it has done.
///
/// The estimate is a moving mean of seconds per sample (weight 0.3 on the newest). A step at more
/// than twice, or less than half, the median of the last five is an outlier. The estimate ignores a
/// single outlier, since devices stall now and then, and starts again from the second of two in a
/// row.
///
/// The spread is a moving mean of relative distances from the estimate. Normally distributed values
/// lie √(2/π) = 0.8 standard deviations from their mean on average.
class PaceEstimate {
 public:
  /// A step of `samples` took this long. One without samples has no effect.
  void observe(std::uint32_t samples, Duration took);

  bool known() const { return !recent_.empty(); }
  double sample_seconds() const { return mean_; }  ///< 0 if unknown
  Duration step_time(std::uint32_t samples) const { return from_seconds(mean_ * samples); }
  /// ε: two standard deviations of a step of `samples`, at least 1 ms.
  Duration margin(std::uint32_t samples) const;

  /// The state of the estimate, for checkpoints.
  wire::PacerMemory::Estimate memory() const;
  void load(const wire::PacerMemory::Estimate& memory);

 private:
  double median() const;
  bool is_outlier(double seconds) const;
  void follow(double seconds);

  double mean_ = 0;            ///< seconds per sample
  double spread_ = 0;          ///< mean distance from `mean_`, relative to it
  std::deque<double> recent_;  ///< seconds per sample of the last steps that were no outliers
  bool last_ignored_ = false;  ///< the step before was an outlier
};

}  // namespace syncopate
