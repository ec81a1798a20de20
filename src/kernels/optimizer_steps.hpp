#pragma once

#include <span>

namespace syncopate {

/// Loops over parameters. Highway vectorises them for the CPU that runs them. All spans of a call
/// have the same length.
///
/// Every operation rounds to float32 by itself, as written, and none is fused with another. So the
/// bits are those of a scalar loop on any CPU, however a vector is cut into blocks.

/// A block of parameters, and the gradient g = scale · gradient + decay · values of its step.
struct StepBlock {
  std::span<float> values;
  std::span<const float> gradient;
  float scale = 1;
  float decay = 0;  ///< L2 weight decay
};

/// values −= rate · g.
void sgd_step(const StepBlock& block, double rate);

struct MomentumStep {
  double rate = 0;
  double momentum = 0;
  bool nesterov = false;
};
/// velocity = momentum · velocity + g; values −= rate · velocity.
/// With `nesterov` (Sutskever et al. 2013): values −= rate · (g + momentum · velocity).
void momentum_step(const StepBlock& block, std::span<float> velocity, const MomentumStep& step);

struct AdagradStep {
  double rate = 0;
  double epsilon = 0;
};
/// sum += g²; values −= rate · g / (√sum + epsilon) (Duchi et al. 2011).
void adagrad_step(const StepBlock& block, std::span<float> sum, const AdagradStep& step);

struct RmspropStep {
  double rate = 0;
  double smoothing = 0;
  double epsilon = 0;
};
/// mean_square = smoothing · mean_square + (1 − smoothing) · g²;
/// values −= rate · g / (√mean_square + epsilon) (Tieleman & Hinton 2012).
void rmsprop_step(const StepBlock& block, std::span<float> mean_square, const RmspropStep& step);

struct AdamMoments {
  std::span<float> mean;
  std::span<float> mean_square;
};
struct AdamStep {
  double rate = 0;
  double beta1 = 0;
  double beta2 = 0;
  double epsilon = 0;
  double correction1 = 1;  ///< 1 − beta1ᵗ at step t, which counts from 1
  double correction2 = 1;  ///< 1 − beta2ᵗ
  double keep = 1;         ///< factor of decoupled weight decay on `values`
};
/// mean = beta1 · mean + (1 − beta1) · g; mean_square = beta2 · mean_square + (1 − beta2) · g²;
/// values = keep · values − rate / correction1 · mean / (√(mean_square / correction2) + epsilon)
/// (Kingma & Ba 2015; `keep`: Loshchilov & Hutter 2019).
void adam_step(const StepBlock& block, const AdamMoments& moments, const AdamStep& step);

/// A gradient that was computed at `backup` and is to be applied at `values`.
struct DelayedBlock {
  std::span<float> gradient;
  std::span<const float> values;
  std::span<const float> backup;
};

/// gradient += lambda · gradient² · (values − backup).
void compensate_delay(const DelayedBlock& block, double lambda);

struct AdaptiveDelay {
  double lambda = 0;
  double smoothing = 0;
  double epsilon = 0;
};
/// mean_square = smoothing · mean_square + (1 − smoothing) · gradient²;
/// gradient += lambda / √(mean_square + epsilon) · gradient² · (values − backup).
void compensate_delay_adaptively(const DelayedBlock& block, std::span<float> mean_square,
                                 const AdaptiveDelay& delay);

/// Moves a replica and the centre towards each other (EASGD, Zhang et al. 2015, equations 5 and 6):
/// d = alpha · (replica − centre); centre += d; replica −= d.
void elastic_exchange(std::span<float> replica, std::span<float> centre, double alpha);

/// into += factor · from.
void add_scaled(std::span<float> into, double factor, std::span<const float> from);

}  // namespace syncopate
