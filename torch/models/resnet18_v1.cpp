#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include <memory>

#include "torch/layers.hpp"
#include "torch/models/resnet_v1.hpp"
#include "torch/network_module.hpp"

namespace syncopate::torch_backend {
namespace {

/// Two 3×3 convolutions around which the input is added.
struct BasicBlock : torch::nn::Module {
  BasicBlock(std::int64_t in, std::int64_t out, std::int64_t stride)
      : conv1(register_module("conv1", convolution(in, out, 3, stride))),
        bn1(register_module("bn1", torch::nn::BatchNorm2d(out))),
        conv2(register_module("conv2", convolution(out, out, 3, 1))),
        bn2(register_module("bn2", torch::nn::BatchNorm2d(out))) {
    if (stride == 1 && in == out) return;
    downsample = register_module(
        "downsample",
        torch::nn::Sequential(convolution(in, out, 1, stride), torch::nn::BatchNorm2d(out)));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor y = bn1(conv1(x)).relu_();
    y = bn2(conv2(y));
    y += downsample ? downsample->forward(x) : x;
    return y.relu_();
  }

  torch::nn::Conv2d conv1;
  torch::nn::BatchNorm2d bn1;
  torch::nn::Conv2d conv2;
  torch::nn::BatchNorm2d bn2;
  torch::nn::Sequential downsample{nullptr};
};

}  // namespace

/// ResNet-18 in its first version: four stages of two basic blocks, ReLU after the addition, a
/// projection (option B) where the shape changes. 11,175,370 parameters for one channel and 10
/// classes.
Network make_resnet18_v1(const SampleShape& input, std::uint32_t classes) {
  return network_of(std::make_shared<ResnetV1<BasicBlock>>(
      input.channels, classes,
      std::array<ResnetV1<BasicBlock>::Stage, 4>{{{64, 2}, {128, 2}, {256, 2}, {512, 2}}}));
}

}  // namespace syncopate::torch_backend
