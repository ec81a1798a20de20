#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace syncopate {

/// How far the local steps of a round carry a replica along a constant gradient, in units of the learning
/// rate: ‖a_i‖₁ of FedNova (Wang et al. 2020), by which the change of a replica is divided so that a
/// worker with many local steps does not pull the model towards its own part of the data.
///
/// A plain step counts 1. With momentum m step k counts the velocity v_k = m v_{k−1} + 1 that a gradient
/// of 1 gives it, and with Nesterov's 1 + m v_k; times the factor of its learning rate. The velocity
/// lives on across rounds, as that of the replica's optimizer does (in FedNova's own formula it begins
/// at 0 in each round).
///
/// A rate shared by a round gives each of its τ_i local steps 1 / τ_i of the learning rate, so that a
/// round carries every replica as far as one step does. How many there will be is not known before, so
/// τ_i is that of the round before; lengths are exact all the same.
class LocalProgress {
 public:
  struct Options {
    double momentum = 0;  ///< of the replica's optimizer; 0 where it has none
    bool nesterov = false;
    bool shared_rate = false;  ///< a round's steps share the learning rate
  };

  /// What lives on from round to round.
  struct State {
    double velocity = 0;
    std::uint64_t steps = 1;  ///< of the last round
  };

  explicit LocalProgress(const Options& options) : options_(options) {}

  /// Of the learning rate of the steps of this round.
  double rate_factor() const {
    return options_.shared_rate ? 1 / static_cast<double>(state_.steps) : 1;
  }

  /// A local step was taken.
  void on_step() {
    double& velocity = state_.velocity;
    velocity = options_.momentum * velocity + 1;
    length_ += rate_factor() * (options_.nesterov ? 1 + options_.momentum * velocity : velocity);
    ++steps_;
  }

  /// The length of the round, which ends.
  double finish_round() {
    state_.steps = std::max<std::uint64_t>(1, std::exchange(steps_, 0));
    return std::exchange(length_, 0);
  }

  const State& state() const { return state_; }
  /// Goes on as the progress did that `state` was taken from at the end of a round.
  void resume(const State& state) { state_ = state; }

 private:
  Options options_;
  State state_;
  std::uint64_t steps_ = 0;  ///< of this round
  double length_ = 0;        ///< likewise
};

}  // namespace syncopate
