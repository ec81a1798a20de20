#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.hpp"

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
  /// Records a step of `samples` that took this long. A step without samples has no effect.
  void observe(std::uint32_t samples, Duration took);

  /// True if a step of `samples` that took this long is an outlier.
  bool is_outlier(std::uint32_t samples, Duration took) const;

  bool known() const { return !recent_.empty(); }
  double sample_seconds() const { return mean_; }  ///< 0 if unknown
  Duration step_time(std::uint32_t samples) const { return from_seconds(mean_ * samples); }
  /// ε: two standard deviations of a step of `samples`, at least 1 ms.
  Duration margin(std::uint32_t samples) const;

  /// The state of the estimate, for checkpoints.
  struct State {
    double mean = 0;
    double spread = 0;
    std::vector<double> recent;
    bool last_ignored = false;
  };
  State state() const;
  void load(const State& state);

 private:
  double median() const;
  bool is_outlier(double sample_seconds) const;
  void follow(double seconds);

  double mean_ = 0;            ///< seconds per sample
  double spread_ = 0;          ///< mean distance from `mean_`, relative to it
  std::deque<double> recent_;  ///< seconds per sample of the last steps that were no outliers
  bool last_ignored_ = false;  ///< the step before was an outlier
};

/// The cost of emulating one worker's device on this machine.
struct PaceCost {
  std::string device;      ///< as messages name it: "worker 2 (gpu-old)"
  double cpu_seconds = 0;  ///< measured, of one mini-batch
  /// The time that the device's profile allows for it at the current time scale. Above 0.
  double budget_seconds = 0;
};

/// Checks whether a machine with `cores` cores can emulate all these devices at once.
///
/// A mini-batch must take at most 95 % of its budget, or the worker runs late at the first
/// disturbance. All workers together may use 90 % of the cores: Σ cost / budget ≤ 0.9 · cores. The
/// rest is for the coordinator, the evaluator and the system.
///
/// Returns nothing if it can, else one line with the figures and the smallest time scale, rounded
/// up to two digits, with which it could. The budgets include `time_scale`.
std::optional<std::string> pace_objection(std::span<const PaceCost> costs, unsigned cores,
                                          double time_scale);

}  // namespace syncopate
