#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "optim/rule_state.hpp"

namespace syncopate {

/// An optimizer by name; it ignores hyperparameters that it does not have, such as the momentum of
/// Adam.
struct RuleSpec {
  std::string name;  ///< one of `update_rule_names()`
  double momentum = 0.9;
  double weight_decay = 0;  ///< added to the gradient; with adamw, subtracted from the parameters
  double beta1 = 0.9;       ///< of adam and adamw
  double beta2 = 0.999;     ///< of adam and adamw
  double alpha = 0.99;      ///< of rmsprop: smoothing of the mean square
  std::optional<double> epsilon{};  ///< empty: torch's, 1e-8, with adagrad 1e-10
};

/// An optimizer over a contiguous range of parameters, as a server applies it.
///
/// It computes the same as torch.optim's of this name with the same hyperparameters, rounding
/// each operation to float32, with the same bits on every CPU; plain SGD without weight decay is
/// `values -= rate * (scale * gradient)`.
///
/// Order:  begin_step, then `apply` on blocks that cover the range once, in any order.
/// Thread: one at a time.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  /// Begins a step at this learning rate: counts it, if the rule counts steps.
  virtual void begin_step(double learning_rate) = 0;
  /// Applies the step under way, with the gradient `scale` · gradient, to the block of the range
  /// that begins at `first`. Both spans have the same length.
  virtual void apply(std::size_t first, std::span<float> values, std::span<const float> gradient,
                     float scale) = 0;

  /// The rule's state, under the names that libtorch's optimizers use.
  virtual OptimizerState state() const = 0;
  /// Continues as the rule whose state this is. An empty state is that before the first step.
  /// Errors: DataError if the state is of another rule or range; the rule is then unchanged.
  virtual void load(const OptimizerState& state) = 0;
};

/// Makes the rule that `spec` names, for a range of `values` parameters.
/// Errors: ConfigError if the name is unknown or a number is out of range.
std::unique_ptr<UpdateRule> make_update_rule(const RuleSpec& spec, std::size_t values);

/// True if a step changes values whose gradient is zero, or state that moves them later.
/// Errors: ConfigError if the name is unknown.
bool moves_without_gradient(const RuleSpec& spec);

/// The names of all rules, in the order of help texts.
std::span<const std::string_view> update_rule_names();

}  // namespace syncopate
