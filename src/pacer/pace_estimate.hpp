#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/time.hpp"

namespace syncopate {

/// How long a step of a device takes, learnt from the steps that it did.
///
/// The estimate is a moving mean of seconds per sample (weight 0.3 on the newest). A step at more than
/// twice, or less than half, the median of the last five is an outlier: it is left out once, since
/// devices hiccup; a second one in a row is believed, and the estimate begins anew with it.
///
/// The spread is a moving mean of relative distances from the estimate. Normal values lie √(2/π) = 0.8
/// standard deviations from their mean on the average.
class PaceEstimate {
 public:
  /// A step without samples teaches nothing.
  void heard(std::uint32_t samples, Duration took);

  bool known() const { return !recent_.empty(); }
  double sample_seconds() const { return mean_; }  ///< 0 if unknown
  Duration step_time(std::uint32_t samples) const { return from_seconds(mean_ * samples); }
  /// ε: two standard deviations of a step of `samples`, at least 1 ms.
  Duration margin(std::uint32_t samples) const;

  /// All that it has learnt.
  struct Memory {
    double mean = 0;
    double spread = 0;
    std::vector<double> recent{};
    bool last_left_out = false;
  };
  Memory memory() const;
  void load(const Memory& memory);

 private:
  double median() const;
  bool is_outlier(double seconds) const;
  void follow(double seconds);

  double mean_ = 0;             ///< seconds per sample
  double spread_ = 0;           ///< mean distance from `mean_`, relative to it
  std::deque<double> recent_;   ///< that were believed
  bool last_left_out_ = false;  ///< the step before was an outlier
};

}  // namespace syncopate
