#pragma once

#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include <memory>
#include <vector>

#include "torch/factory.hpp"

namespace syncopate::torch_backend {

/// One of libtorch's optimizers over `parameters`, with libtorch's default for each hyperparameter
/// that `settings` lack.
/// Errors: ConfigError, for a number out of range.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerSettings& settings,
                                                        std::vector<torch::Tensor> parameters);

}  // namespace syncopate::torch_backend
