#pragma once

#include "job/spec/config.hpp"

namespace syncopate {

/// The learning rate over the course of training.
///
/// With base rate r, E epochs in all, w epochs of warm-up, factor f and e the epochs done so far:
///
///     e < w      r · e / w                                linear warm-up (Goyal et al. 2017, 2.2)
///     constant   r
///     step       r · f^⌊(e − w) / s⌋                      s epochs between drops
///     cosine     r · (f + (1 − f) · (1 + cos(π · t)) / 2) t = (e − w) / (E − w), at most 1
///                                                         (Loshchilov & Hutter 2017, equation 5,
///                                                         one cycle from r to f · r)
class Schedule {
 public:
  /// Reads `schedule`, `learning_rate` (r), `epochs` (E), `warm_up` (w), `schedule_factor` (f) and
  /// `schedule_step` (s).
  /// Errors: ConfigError, one line with the option: a rate or `epochs` not
  ///         above 0; a warm-up not in [0, E]; for `step`, s not above 0 or f not in (0, 1]; for
  ///         `cosine`, f not in [0, 1]. InternalError: a learning rate that was not resolved.
  explicit Schedule(const TrainConfig& config);

  /// The rate after `epoch` ≥ 0 epochs, fractions included.
  double rate(double epoch) const;

 private:
  ScheduleShape shape_;
  double base_;
  double epochs_;
  double warm_up_;
  double step_;
  double factor_;
};

}  // namespace syncopate
