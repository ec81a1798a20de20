#pragma once

#include <cstddef>
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
/// both others follow.
///
/// Every worker computes the same bits.
class PrimalAveraging final : public UpdateRule {
 public:
  struct Options {
    double average = 0.9;  ///< μ_x, from 0 to below 1
    double point = 0.8;    ///< μ_y, from 0 to 1
  };

  PrimalAveraging(const Options& options, std::size_t values);

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
  double rate_ = 0;
};

}  // namespace syncopate
