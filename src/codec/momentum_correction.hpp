#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "codec/compression.hpp"

namespace syncopate {

/// Lets gradients for optimizers with momentum be summed with a loss.
///
/// Error feedback makes what is lost arrive later. Momentum, which makes gradients act later, has no patience for that:
/// together they overshoot, and training swings at learning rates that are good ones without a loss. So ranks send
/// velocities (Lin et al. 2018, momentum correction), and in these a part of every gradient goes ahead: with all the
/// momentum that it will come to, at once (quasi-hyperbolic momentum, Ma & Yarats 2019). It comes late by as much as
/// error feedback takes.
///
/// With m the momentum, a the part that goes ahead, g_t what a rank brings to the sum, C the sum with its loss:
///
///     u_t = m · u_(t−1) + g_t
///     p_t = (1 − a) · u_t + a · g_t / (1 − m)      what this rank sends, instead of g_t
///     d_t = C(p_t of all ranks)
///     x_t = d_t − m · b_(t−1)                      what the optimizer gets as the mean gradient
///     b_t = m · b_(t−1) + x_t                      and makes of it: d_t
///
/// With a = 0 and nothing lost x_t is the sum of g_t, but for rounding. Whatever a is, Σ p and Σ u are the same in the
/// long run. Optimizers are left as they are, with weight decay and Nesterov's look ahead, and may begin with a momentum
/// of their own, since all of this is linear.
///
/// Invariant: b is made of what all ranks have, so it and x have the same bits on all of them.
/// Thread:    one at a time.
class MomentumCorrection {
 public:
  struct Options {
    double momentum;  ///< from 0 to below 1
    double ahead;     ///< a, from 0 to 1
  };

  explicit MomentumCorrection(const Options& options) : options_(options) {}

  /// u and b get room for so many values; those that they have stay.
  void reserve(std::size_t values);

  /// Replaces g / `factor` by p, for the values from `first` on. What is not finite is sent, but not
  /// remembered.
  void to_velocity(std::span<float> values, float factor, std::size_t first);

  /// u and b. Thread: as `to_velocity`.
  std::span<const float> own_velocity() const { return own_; }
  std::span<const float> velocity_of_all() const { return all_; }
  void load(std::span<const float> own, std::span<const float> all) {
    own_.assign(own.begin(), own.end());
    all_.assign(all.begin(), all.end());
  }

  /// Replaces d by x, likewise.
  void to_gradient(std::span<float> values, std::size_t first);

 private:
  Options options_;
  std::vector<float> own_;  ///< u
  std::vector<float> all_;  ///< b
};

/// How much of a gradient goes ahead under this compression. 0.3, which Ma & Yarats find good by itself, for `onebit` and
/// a `topk` that keeps little; nothing where next to nothing is lost.
double part_ahead(const Compression& compression);

}  // namespace syncopate
