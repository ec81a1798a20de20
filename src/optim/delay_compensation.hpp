#pragma once

#include <cstddef>
#include <span>

#include "optim/rule_state.hpp"

namespace syncopate {

/// Delay-compensated asynchronous SGD (Zheng et al. 2017): approximates the gradient at the
/// present parameters w from a gradient g that was computed at w_bak. Equation 10, elementwise:
///
///     g + λ_t · g² · (w − w_bak)
///
/// with λ_t = λ, or, if `adaptive`, λ_t = λ / √(m_t + 1e-7), m_0 = 0 and
/// m_t = 0.95 · m_{t−1} + 0.05 · g².
///
/// Thread: one at a time.
class DelayCompensation {
 public:
  struct Options {
    double lambda =
        0.04;  ///< λ; 0 leaves every gradient as it is. The paper takes 2 where adaptive
    bool adaptive = false;
  };

  /// Compensates gradients of a range of `values` parameters.
  /// Errors: ConfigError if λ is negative, infinite or no number.
  DelayCompensation(const Options& options, std::size_t values);

  /// Compensates a block of a gradient, in place; the block begins at `first` of the range.
  /// `values` are the present parameters, `backup` those at which the gradient was computed. The
  /// spans have the same length. The blocks of a gradient cover the range once.
  void apply(std::size_t first, std::span<float> gradient, std::span<const float> values,
             std::span<const float> backup);

  /// The moving mean, as the slot "gradient_mean_square"; empty unless adaptive.
  OptimizerState state() const { return memory_.state(); }
  /// As `UpdateRule::load`. Errors: DataError.
  void load(const OptimizerState& state) { memory_.load(state); }

 private:
  Options options_;
  RuleMemory memory_;
};

}  // namespace syncopate
