#pragma once

#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include <memory>
#include <vector>

#include "scheme/replica.hpp"
#include "torch/factory.hpp"

namespace syncopate::torch_backend {

/// One of libtorch's optimizers over `parameters`, with libtorch's default for each hyperparameter
/// that `settings` lack.
/// Errors: ConfigError if a number is out of range.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerSettings& settings,
                                                        std::vector<torch::Tensor> parameters);

/// The complete state of one of libtorch's SGD, RMSprop, Adam, AdamW or Adagrad, bit for bit.
///
/// Slots and counters have the names of torch.optim's state_dict: momentum_buffer, square_avg,
/// exp_avg, exp_avg_sq, sum, step. A slot holds the values of all parameters, one after another in
/// the optimizer's own order. Before the first step there are neither slots nor counters, except
/// for Adagrad. Every parameter must have taken part in every step. Learning rates are not part of
/// the state.
///
/// Errors: ConfigError if the optimizer is of another kind.
OptimizerState state_of(torch::optim::Optimizer& optimizer);

/// Restores `state` in `optimizer`, which then continues as the optimizer of `state` would.
/// Errors: DataError, when the state is that of another kind of optimizer or of other parameters;
/// the optimizer is then unchanged. ConfigError as above.
void load_state(torch::optim::Optimizer& optimizer, const OptimizerState& state);

}  // namespace syncopate::torch_backend
