// A network as an extension adds it: this file, and its line in spec/networks.inc.

#include <torch/nn/modules/linear.h>

#include "torch/network_module.hpp"

namespace syncopate::torch_backend {
namespace {

struct OneLayer : torch::nn::Module {
  OneLayer(std::int64_t inputs, std::int64_t classes)
      : layer(register_module("layer", torch::nn::Linear(inputs, classes))) {}

  torch::Tensor forward(const torch::Tensor& samples) { return layer(samples.flatten(1)); }

  torch::nn::Linear layer;
};

}  // namespace

Network make_toy(const SampleShape& input, std::uint32_t classes) {
  return network_of(std::make_shared<OneLayer>(static_cast<std::int64_t>(input.values()), classes));
}

}  // namespace syncopate::torch_backend
