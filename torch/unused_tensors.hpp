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
/// Here their gradients are zeros, where torch has none and leaves the parameter as it is. With
/// plain SGD that is the same; a weight decay or a momentum would move them, and Adam counts the
/// steps of each parameter.
class UnusedTensors {
 public:
  UnusedTensors(const torch::optim::Optimizer& optimizer, const FlatTensors& params);

  /// `used` has a value a tensor: true where the pass has computed a gradient.
  /// Errors: ConfigError, for a parameter that a step would treat unlike torch.
  void expect_as_in_torch(const std::vector<bool>& used);
  /// The optimizer goes on from this state.
  void continue_from(const OptimizerState& state);

 private:
  /// What an optimizer does with a gradient of zeros, which torch does not do without one.
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
