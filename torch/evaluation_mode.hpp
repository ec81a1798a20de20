#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <vector>

namespace syncopate::torch_backend {

/// While it lives, a module is in evaluation mode; after that, each of its parts is in its own mode
/// again.
class EvaluationMode {
 public:
  explicit EvaluationMode(torch::nn::Module& module);
  ~EvaluationMode();
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  std::vector<std::shared_ptr<torch::nn::Module>> parts_;
  std::vector<bool> was_training_;
};

}  // namespace syncopate::torch_backend
