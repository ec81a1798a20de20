#include <torch/nn/modules/linear.h>

#include "torch/network_module.hpp"

namespace syncopate::torch_backend {
namespace {

struct Mlp : torch::nn::Module {
  Mlp(std::int64_t inputs, std::int64_t classes)
      : fc1(register_module("fc1", torch::nn::Linear(inputs, 256))),
        fc2(register_module("fc2", torch::nn::Linear(256, 128))),
        fc3(register_module("fc3", torch::nn::Linear(128, classes))) {}

  torch::Tensor forward(const torch::Tensor& samples) {
    torch::Tensor x = samples.flatten(1);
    x = fc1(x).relu_();
    x = fc2(x).relu_();
    return fc3(x);
  }

  torch::nn::Linear fc1, fc2, fc3;
};

}  // namespace

/// A multilayer perceptron: inputs of any shape, 256 and 128 hidden units with ReLU, classes.
Network make_mlp(const SampleShape& input, std::uint32_t classes) {
  return network_of(std::make_shared<Mlp>(static_cast<std::int64_t>(input.values()), classes));
}

}  // namespace syncopate::torch_backend
