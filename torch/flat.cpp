#include "torch/flat.hpp"

#include <stdexcept>
#include <utility>

#include "base/errors.hpp"

namespace syncopate::torch_backend {

std::vector<NamedTensor> some_trained_tensors(const torch::nn::Module& module) {
  try {
    return flat::some_trained_tensors(module);
  } catch (const std::invalid_argument& error) {
    throw ConfigError(error.what());
  }
}

std::vector<NamedTensor> untrained_tensors(const torch::nn::Module& module) {
  std::vector<NamedTensor> tensors = flat::frozen_tensors(module);
  const std::vector<NamedTensor> buffers = flat::floating_buffers(module);
  tensors.insert(tensors.end(), buffers.begin(), buffers.end());
  return tensors;
}

FlatTensors::FlatTensors(std::vector<NamedTensor> tensors, torch::Device device) try : flat
  ::FlatTensors(std::move(tensors), device) {}
catch (const std::invalid_argument& error) {
  throw ConfigError(error.what());
}

std::vector<TensorInfo> FlatTensors::layout() const {
  std::vector<TensorInfo> layout;
  for (std::size_t i = 0; i < tensors().size(); ++i) {
    const NamedTensor& named = tensors()[i];
    layout.push_back({named.name, named.tensor.sizes().vec(), offset(i)});
  }
  return layout;
}

}  // namespace syncopate::torch_backend
