#pragma once

#include <torch/optim/optimizer.h>

#include <map>
#include <string>

namespace syncopate::torch_backend {

/// The rule of an optimizer in the words of `syncopate train`, for a parameter server that applies
/// it: {"optimizer", "momentum"}, {"momentum", "0.9"}.
struct OptimizerRule {
  double learning_rate = 0;
  std::map<std::string, std::string> options = {};
  std::string has_no_rule = {};  ///< why no server can apply it; empty: one can
};

OptimizerRule rule_of(const torch::optim::Optimizer& optimizer);

}  // namespace syncopate::torch_backend
