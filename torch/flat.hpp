#pragma once

#include <string>
#include <syncopate/torch/flat.hpp>
#include <vector>

#include "scheme/replica.hpp"

namespace syncopate::torch_backend {

using flat::FlatVector;
using flat::NamedTensor;
using flat::trained_tensors;

/// As `flat::some_trained_tensors`. Errors: ConfigError if the module has none.
std::vector<NamedTensor> some_trained_tensors(const torch::nn::Module& module);

/// The floating state of a module that is not trained: frozen parameters and floating buffers.
std::vector<NamedTensor> untrained_tensors(const torch::nn::Module& module);

/// Tensors of a module as views of one flat vector, whose layout the schemes and checkpoints know.
class FlatTensors : public flat::FlatTensors {
 public:
  /// As the constructor of `flat::FlatTensors`. Errors: ConfigError if a tensor is not float32.
  FlatTensors(std::vector<NamedTensor> tensors, torch::Device device);

  std::vector<TensorInfo> layout() const;
};

}  // namespace syncopate::torch_backend
