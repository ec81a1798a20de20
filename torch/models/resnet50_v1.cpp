#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include <memory>

#include "torch/layers.hpp"
#include "torch/models/resnet_v1.hpp"
#include "torch/network_module.hpp"

namespace syncopate::torch_backend {
namespace {

/// 1×1, 3×3 and 1×1 convolutions around which the input is added. The first one has the stride; the
/// 1×1 convolutions have biases.
struct BottleneckV1 : torch::nn::Module {
  BottleneckV1(std::int64_t in, std::int64_t out, std::int64_t stride)
      : conv1(register_module(
            "conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out / 4, 1).stride(stride)))),
        bn1(register_module("bn1", torch::nn::BatchNorm2d(out / 4))),
        conv2(register_module("conv2", convolution(out / 4, out / 4, 3, 1))),
        bn2(register_module("bn2", torch::nn::BatchNorm2d(out / 4))),
        conv3(register_module("conv3", torch::nn::Conv2d(out / 4, out, 1))),
        bn3(register_module("bn3", torch::nn::BatchNorm2d(out))) {
    if (in == out) return;
    downsample = register_module(
        "downsample",
        torch::nn::Sequential(convolution(in, out, 1, stride), torch::nn::BatchNorm2d(out)));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor y = bn1(conv1(x)).relu_();
    y = bn2(conv2(y)).relu_();
    y = bn3(conv3(y));
    y += downsample ? downsample->forward(x) : x;
    return y.relu_();
  }

  torch::nn::Conv2d conv1;
  torch::nn::BatchNorm2d bn1;
  torch::nn::Conv2d conv2;
  torch::nn::BatchNorm2d bn2;
  torch::nn::Conv2d conv3;
  torch::nn::BatchNorm2d bn3;
  torch::nn::Sequential downsample{nullptr};
};

}  // namespace

/// ResNet-50 in its first version: stages of 3, 4, 6 and 3 bottleneck blocks, ReLU after the
/// addition, a projection (option B) where the shape changes. Two of three convolutions of a block
/// have biases, as in Gluon's model. 25,575,912 parameters for three channels and 1000 classes.
Network make_resnet50_v1(const SampleShape& input, std::uint32_t classes) {
  return network_of(std::make_shared<ResnetV1<BottleneckV1>>(
      input.channels, classes,
      std::array<ResnetV1<BottleneckV1>::Stage, 4>{{{256, 3}, {512, 4}, {1024, 6}, {2048, 3}}}));
}

}  // namespace syncopate::torch_backend
