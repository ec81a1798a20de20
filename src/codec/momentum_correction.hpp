#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "codec/codec.hpp"

namespace syncopate {

/// Lets ranks reduce lossy gradients for optimizers with momentum.
///
/// Error feedback delays the losses of a codec, and momentum prolongs the effect of every gradient.
/// Together they overshoot, and training oscillates at learning rates that work without loss. So
/// ranks send velocities (Lin et al. 2018, momentum correction), and send a part of every gradient
/// ahead in these: at once, with all the momentum that it will accumulate (quasi-hyperbolic
/// momentum, Ma & Yarats 2019). This part arrives late only by the delay of error feedback.
///
/// With m the momentum, a the part sent ahead, g_t a rank's gradient, C the lossy sum over ranks:
///
///     u_t = m · u_(t−1) + g_t
///     p_t = (1 − a) · u_t + a · g_t / (1 − m)      this rank sends p_t instead of g_t
///     d_t = C(p_t of all ranks)
///     x_t = d_t − m · b_(t−1)                      the optimizer gets x_t as the mean gradient
///     b_t = m · b_(t−1) + x_t                      and computes from it the velocity b_t = d_t
///
/// With a = 0 and no loss x_t is the sum of g_t, apart from rounding. For every a, Σ p and Σ u
/// agree in the long run. Optimizers stay as they are, with weight decay and Nesterov momentum, and
/// may begin with a velocity of their own, since all of this is linear.
///
/// Invariant: b follows from values that all ranks have, so b and x have the same bits on all.
/// Thread:    one at a time.
class MomentumCorrection {
 public:
  struct Options {
    double momentum;  ///< from 0 to below 1
    double ahead;     ///< a, from 0 to 1
  };

  explicit MomentumCorrection(const Options& options) : options_(options) {}

  /// Makes room in u and b for `values` values; their present ones stay.
  void reserve(std::size_t values);

  /// Replaces g / `factor` by p, for the values from `first` on. A value that is not finite is
  /// sent, but does not enter u.
  void to_velocity(std::span<float> values, float factor, std::size_t first);

  /// u and b. Thread: as `to_velocity`.
  std::span<const float> own_velocity() const { return own_; }
  std::span<const float> velocity_of_all() const { return all_; }
  void load(std::span<const float> own, std::span<const float> all) {
    own_.assign(own.begin(), own.end());
    all_.assign(all.begin(), all.end());
  }

  /// Replaces d by x, for the values from `first` on.
  void to_gradient(std::span<float> values, std::size_t first);

 private:
  Options options_;
  std::vector<float> own_;  ///< u
  std::vector<float> all_;  ///< b
};

/// The part of a gradient that lossy codecs send ahead, which Ma & Yarats recommend in general.
inline constexpr double usual_gradient_ahead = 0.3;

/// The part of a gradient to send ahead under this compression: that of its `CodecSpec`.
double gradient_ahead(const Compression& compression);

}  // namespace syncopate
