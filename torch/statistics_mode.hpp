#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <vector>

#include "torch/evaluation_mode.hpp"

namespace syncopate::torch_backend {

/// While it lives, the BatchNorm layers of a module begin their running statistics again, as the mean over
/// all batches that pass through (torch.optim.swa_utils.update_bn), and all other layers are in evaluation
/// mode. After that, each part is in its own mode again, with the momentum that it had.
class StatisticsMode {
 public:
  explicit StatisticsMode(torch::nn::Module& module);
  ~StatisticsMode();
  StatisticsMode(const StatisticsMode&) = delete;
  StatisticsMode& operator=(const StatisticsMode&) = delete;

  /// Whether there is a layer that keeps statistics.
  bool has_statistics() const { return !restore_.empty(); }

 private:
  template <class Layer>
  void reset_if(torch::nn::Module& part);

  EvaluationMode evaluation_;  ///< ends last, and gives each part its own mode
  std::vector<std::function<void()>> restore_;
};

}  // namespace syncopate::torch_backend
