#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/nn/module.h>

#include <optional>
#include <string>

#include "torch/network_module.hpp"

namespace syncopate::torch_backend {

/// A TorchScript module as a module of libtorch's C++ interface. Both hold the same tensors under
/// the same names, and submodules correspond to submodules. A change of mode goes to both.
class ScriptModule final : public torch::nn::Module {
 public:
  explicit ScriptModule(torch::jit::Module script);

  void train(bool on = true) override;

  /// Interprets the script operator by operator: no pass is compiled for the shapes of an earlier
  /// one, so a run repeats bit for bit.
  /// Errors: ConfigError if the script fails or returns something else than a tensor.
  torch::Tensor forward(const torch::Tensor& inputs);

  /// True if this module itself keeps running statistics, as a BatchNorm layer does.
  bool has_statistics() const;

  /// The share of a batch in the running statistics. A script holds it as a constant, so it is
  /// measured: a batch of ones raises a mean of 0 by it. Changes the statistics.
  /// Errors: ConfigError if the layer is no BatchNorm, or its statistics do not change.
  double momentum();

 private:
  torch::jit::Module script_;
};

/// Loads the network of a TorchScript file. The initial parameters are those of the file.
/// Errors: ConfigError if the file is missing, damaged or not TorchScript.
Network load_script_network(const std::string& path);

}  // namespace syncopate::torch_backend
