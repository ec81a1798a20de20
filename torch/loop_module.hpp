#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <span>
#include <vector>

#include "torch/flat.hpp"
#include "train/loop_replica.hpp"

namespace syncopate::torch_backend {

/// The replica of a module that a program trains by a loop of its own.
///
/// Parameters, gradients and floating buffers of the module become views of flat vectors, and stay
/// so when the replica is gone. A gradient that the program has replaced is copied back into its
/// view (`collect`); a parameter without a gradient has the gradient zero.
///
/// Module and optimizer outlive every call. Integer buffers stay with the module.
class LoopModule final : public LoopReplica {
 public:
  /// Errors: ConfigError, for a module without trained parameters, of several devices, or not of
  ///         float32; for an optimizer of other parameters, or one that needs a closure.
  LoopModule(torch::nn::Module& module, torch::optim::Optimizer& optimizer);

  /// Sets all gradients to zero.
  void zero_gradients();
  /// Makes the flat gradient that of the last backward passes. Errors: ConfigError, for a parameter
  /// that the program has replaced, or a sparse gradient.
  void collect();
  /// Of the optimizer's first group.
  double learning_rate() const;

  std::vector<TensorInfo> layout(ReplicaVector which) const override;
  std::span<float> view(ReplicaVector which) override;
  void store(ReplicaVector which) override;
  void move_into(SharedMemory& memory) override;
  OptimizerState optimizer_state() const override;
  void load_optimizer_state(const OptimizerState& state) override;

 private:
  void take_step(double rate_factor) override;
  FlatVector& vector(ReplicaVector which);
  void expect_parameters_of(const torch::optim::Optimizer& optimizer) const;

  torch::optim::Optimizer& optimizer_;
  FlatTensors params_;
  FlatVector grads_;
  FlatTensors buffers_;
};

}  // namespace syncopate::torch_backend
