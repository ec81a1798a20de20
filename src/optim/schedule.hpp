#pragma once

#include "config/option_values.hpp"

namespace syncopate {

/// The shape of a learning-rate schedule.
enum class ScheduleShape { constant, step, cosine };
constexpr auto names_of(ScheduleShape) {
  return std::to_array<Named<ScheduleShape>>({{"constant", ScheduleShape::constant},
                                              {"step", ScheduleShape::step},
                                              {"cosine", ScheduleShape::cosine}});
}

/// The learning rate over the course of training.
///
/// With base rate r, E epochs in total, w epochs of warm-up, factor f and e the finished epochs:
///
///     e < w      r · e / w                                linear warm-up (Goyal et al. 2017, 2.2)
///     constant   r
///     step       r · f^⌊(e − w) / s⌋                      s epochs between drops
///     cosine     r · (f + (1 − f) · (1 + cos(π · t)) / 2) t = (e − w) / (E − w), at most 1
///                                                         (Loshchilov & Hutter 2017, equation 5,
///                                                         one cycle from r to f · r)
class Schedule {
 public:
  struct Options {
    ScheduleShape shape = ScheduleShape::constant;
    double learning_rate = 0;  ///< r
    double epochs = 1;         ///< E
    double warm_up = 0;        ///< w, in epochs
    double step_epochs = 1;    ///< s
    double factor = 1;         ///< f
  };

  /// Errors: ConfigError, one line with the option: a rate or `epochs` not above 0; a warm-up not
  ///         in [0, E]; for `step`, s not above 0 or f not in (0, 1]; for `cosine`, f not in [0,
  ///         1].
  explicit Schedule(const Options& options);

  /// The rate after `epoch` ≥ 0 epochs, fractions included.
  double rate(double epoch) const;

 private:
  Options options_;
};

}  // namespace syncopate
