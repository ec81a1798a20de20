#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "optim/update_rule.hpp"

namespace syncopate {

/// Generalized Primal Averaging (Defazio et al. 2025), the optimizer of rounds of local steps. With
/// the mean change Δ of a round, the fast model z, its average x, and y, from which the workers
/// take their steps:
///
///     z ← z + rate · Δ;  x ← μ_x x + (1 − μ_x) z;  y ← μ_y x + (1 − μ_y) z
///
/// x is the model that is tested and saved. μ_y = 1 is heavy-ball momentum; with μ_y = 0 the
/// workers take plain steps, which x averages. The rule moves y and remembers v = z − x, from which
/// both others follow. By default μ_x grows with the round t, so that x averages about the last
/// ninth of all rounds, however many there are (polynomial decay, Shamir & Zhang 2013):
///
///     μ_x = 1 − (η + 1) / (t + η),  η = 8
///
/// Every worker computes the same bits.
class PrimalAveraging final : public UpdateRule {
 public:
  struct Options {
    std::optional<double> average{};  ///< μ_x, from 0 to below 1; empty: by the round
    double point = 0.5;               ///< μ_y, from 0 to 1
  };

  PrimalAveraging(const Options& options, std::size_t values);

  /// Called before `begin_step`, with the number of this step of the values, from 1 on.
  void begin_round(std::uint64_t round);
  void begin_step(double learning_rate) override { rate_ = learning_rate; }
  void apply(std::size_t first, std::span<float> values, std::span<const float> gradient,
             float scale) override;
  OptimizerState state() const override { return memory_.state(); }
  void load(const OptimizerState& state) override { memory_.load(state); }

  /// Replaces y, the whole range, by x.
  void average(std::span<float> values) const;

 private:
  Options options_;
  mutable RuleMemory memory_;  ///< v; a part of it is not const
  std::size_t values_;
  double average_;  ///< μ_x of the step under way
  double rate_ = 0;
};

}  // namespace syncopate
