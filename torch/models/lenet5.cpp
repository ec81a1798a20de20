#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "torch/layers.hpp"
#include "torch/network_module.hpp"

namespace syncopate::torch_backend {
namespace {

/// A side's length after the padded convolution, a pooling, a convolution and a pooling.
std::int64_t side_after_convolutions(std::uint32_t side) {
  return (side / 2 - 4) / 2;
}

struct Lenet5 : torch::nn::Module {
  Lenet5(const SampleShape& input, std::int64_t classes)
      : conv1(register_module(
            "conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(input.channels, 6, 5).padding(2)))),
        conv2(register_module("conv2", torch::nn::Conv2d(6, 16, 5))),
        fc1(register_module("fc1", torch::nn::Linear(16 * side_after_convolutions(input.height) *
                                                         side_after_convolutions(input.width),
                                                     120))),
        fc2(register_module("fc2", torch::nn::Linear(120, 84))),
        fc3(register_module("fc3", torch::nn::Linear(84, classes))) {}

  torch::Tensor forward(const torch::Tensor& images) {
    // ReLU after the pooling gives the same values and gradients for a quarter of the work.
    torch::Tensor x = channels_last_on_cpu(images);
    x = torch::max_pool2d(conv1(x), 2).relu_();
    x = torch::max_pool2d(conv2(x), 2).relu_();
    x = fc1(x.flatten(1)).relu_();
    x = fc2(x).relu_();
    return fc3(x);
  }

  torch::nn::Conv2d conv1, conv2;
  torch::nn::Linear fc1, fc2, fc3;
};

}  // namespace

/// LeNet-5 (LeCun et al. 1998) as it is trained today: convolutions of 6 and 16 filters of 5×5, the
/// first with a padding of 2, each with max-pooling and ReLU, then linear layers of 120, 84 and
/// `classes` units. 61,706 parameters for 1×28×28 and 10 classes.
Network make_lenet5(const SampleShape& input, std::uint32_t classes) {
  return network_of(std::make_shared<Lenet5>(input, classes));
}

}  // namespace syncopate::torch_backend
