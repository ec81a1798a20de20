#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "optim/rule_state.hpp"

namespace syncopate {

/// The control variates of one worker (SCAFFOLD, Karimireddy et al. 2020). They keep replicas from
/// drifting apart where the workers' data differ. With c_i the recent mean gradient of worker i and
/// c = Σ p_i c_i its mean over workers, a local step uses the gradient
///
///     g_i − c_i + c
///
/// The correction c − c_i replaces the worker's own direction by that of all workers.
///
/// At the end of a round c_i becomes the mean of the uncorrected gradients g_i over the last
/// `memory` samples, or over the samples of the round if these are more: (1 − β) c_i + β ḡ, where ḡ
/// is the mean over the n samples of the round and β = n / max(n, memory). Before `memory` samples
/// have been seen, the mean is over all samples so far. For plain SGD and β = 1 this is option II
/// of the paper, c_i − c + (w_t − w_i) / (τ_i η); it uses gradients instead of changes, so it holds
/// for any local optimizer.
///
/// c and c_i change together, when the mean of a round arrives: c is always the mean of the c_i in
/// use, so the weighted corrections of all workers are zero in total.
///
/// Thread: one at a time.
class ControlVariates {
 public:
  /// `memory` is at least 1.
  explicit ControlVariates(std::uint32_t memory) : memory_(memory) {}

  /// Accumulates the gradient of a local step over `samples` samples, and corrects it. A gradient
  /// without samples does not change. All gradients have the same length.
  void correct(std::span<float> gradient, std::uint32_t samples);

  /// Ends a round: computes the new c_i and writes it to `mine`, which is as long as a gradient.
  void contribute(std::span<float> mine);
  /// The mean over all workers of their last contributions has arrived.
  void on_mean(std::span<const float> mean);

  /// The state between two rounds, for a checkpoint. Errors of `load`: DataError if the state is
  /// not that of control variates.
  OptimizerState state() const;
  void load(const OptimizerState& state);

 private:
  std::uint32_t memory_;
  std::uint64_t seen_ = 0;           ///< samples of all rounds, up to `memory`
  std::uint64_t round_samples_ = 0;  ///< of the round under way
  std::vector<float> round_sum_;     ///< Σ n g over them
  std::vector<float> mine_;          ///< c_i of the last `contribute`
  std::vector<float> own_;           ///< c_i in use
  std::vector<float> correction_;    ///< c − c_i in use; empty before the first mean
};

}  // namespace syncopate
