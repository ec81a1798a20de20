#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "optim/optimizer_state.hpp"

namespace syncopate {

/// The control variates of one worker (SCAFFOLD, Karimireddy et al. 2020), which keep local steps on
/// data that differ by worker from drifting apart. With c_i the gradient of worker i as it was lately
/// and c = Σ p_i c_i its mean over workers, a local step takes
///
///     g_i − c_i + c
///
/// for its gradient: its own, with what it lacks of the gradients of the others.
///
/// At the end of a round c_i becomes the mean of its gradients g_i before correction over the last
/// `memory` samples, or over those of the round, if these are more: (1 − β) c_i + β ḡ, where ḡ is the
/// mean over the n samples of the round and β = n / max(n, memory); at the beginning, over all samples
/// so far. For plain SGD and β = 1 this is option II of the paper, c_i − c + (w_t − w_i) / (τ_i η); it
/// takes gradients instead of changes, so it holds for any local optimizer.
///
/// c and c_i change together, when the mean of a round has come: c is always the mean of the c_i that
/// the workers use, so corrections add up to nothing over workers.
///
/// Thread: one at a time.
class ControlVariates {
 public:
  /// `memory` is at least 1.
  explicit ControlVariates(std::uint32_t memory) : memory_(memory) {}

  /// Counts the gradient of a local step over so many samples, and corrects it. One without samples
  /// stays as it is. All gradients have the same length.
  void correct(std::span<float> gradient, std::uint32_t samples);

  /// A round ends: makes the new c_i, and writes it to `mine`, as long as a gradient.
  void contribute(std::span<float> mine);
  /// The mean over workers of what they wrote at their last `depart` has come.
  void on_mean(std::span<const float> mean);

  /// Between two rounds. Goes on as the variates did that the state was taken from.
  /// Errors of `load`: DataError, when the state is none of control variates.
  OptimizerState state() const;
  void load(const OptimizerState& state);

 private:
  std::uint32_t memory_;
  std::uint64_t seen_ = 0;           ///< samples of all rounds, up to `memory`
  std::uint64_t round_samples_ = 0;  ///< of the round under way
  std::vector<float> round_sum_;     ///< Σ n g over them
  std::vector<float> mine_;          ///< c_i as of the last `depart`
  std::vector<float> own_;           ///< c_i in use
  std::vector<float> correction_;    ///< c − c_i in use; empty before the first mean
};

}  // namespace syncopate
