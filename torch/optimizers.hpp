#pragma once

#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include <memory>
#include <vector>

#include "torch/factory.hpp"

namespace syncopate::torch_backend {

/// One of libtorch's optimizers over `parameters`. What the rule has no use for, such as the
/// momentum of Adam, is ignored; what `spec` does not say is libtorch's default.
/// Errors: ConfigError, for an unknown name or a number out of range.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerSpec& spec,
                                                        std::vector<torch::Tensor> parameters);

}  // namespace syncopate::torch_backend
