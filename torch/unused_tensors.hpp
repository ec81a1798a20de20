#pragma once

#include <torch/optim/optimizer.h>

#include <cstddef>
#include <vector>

#include "optim/rule_state.hpp"
#include "torch/flat.hpp"

namespace syncopate::torch_backend {

/// The parameters that a network does not use in each of its passes, such as layers that it drops
/// or heads that it takes by turns.
///
/// In a replica their gradients are zeros; torch has no gradient for them and leaves the parameters
/// as they are. With plain SGD both are the same, but a weight decay or a momentum would move them,
/// and Adam counts the steps of each parameter.
class UnusedTensors {
 public:
  UnusedTensors(const torch::optim::Optimizer& optimizer, const FlatTensors& params);

  /// `used` has one value per tensor: true if the pass has computed its gradient.
  /// Errors: ConfigError if a step would treat a parameter differently than torch does.
  void expect_as_in_torch(const std::vector<bool>& used);
  /// Called when the optimizer continues from `state`.
  void continue_from(const OptimizerState& state);

 private:
  /// The effects of a gradient of zeros on an optimizer, which torch avoids by having no gradient.
  struct Rule {
    bool decays = true;     ///< moves the parameter in any case
    bool remembers = true;  ///< moves it, or changes its memory, after other gradients
    bool counts = true;     ///< counts a step of it
  };

  static Rule rule_of(const torch::optim::Optimizer& optimizer);

  const FlatTensors& params_;
  Rule rule_;
  std::vector<bool> were_used_;  ///< by tensor, in a pass before
  bool is_first_ = true;         ///< no pass yet
};

}  // namespace syncopate::torch_backend
