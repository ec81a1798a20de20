#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <memory>

#include "torch/layers.hpp"
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

torch::nn::Sequential stage(std::int64_t in, std::int64_t out, std::int64_t stride) {
  return torch::nn::Sequential(std::make_shared<BasicBlock>(in, out, stride),
                               std::make_shared<BasicBlock>(out, out, 1));
}

struct Resnet18 : torch::nn::Module {
  Resnet18(std::int64_t channels, std::int64_t classes)
      : conv1(register_module("conv1", convolution(channels, 64, 7, 2))),
        bn1(register_module("bn1", torch::nn::BatchNorm2d(64))),
        layer1(register_module("layer1", stage(64, 64, 1))),
        layer2(register_module("layer2", stage(64, 128, 2))),
        layer3(register_module("layer3", stage(128, 256, 2))),
        layer4(register_module("layer4", stage(256, 512, 2))),
        fc(register_module("fc", torch::nn::Linear(512, classes))) {}

  torch::Tensor forward(const torch::Tensor& images) {
    torch::Tensor x = bn1(conv1(images)).relu_();
    x = torch::max_pool2d(x, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1);
    x = layer4->forward(layer3->forward(layer2->forward(layer1->forward(x))));
    return fc(channel_means(x));
  }

  torch::nn::Conv2d conv1;
  torch::nn::BatchNorm2d bn1;
  torch::nn::Sequential layer1, layer2, layer3, layer4;
  torch::nn::Linear fc;
};

}  // namespace

/// ResNet-18 in its first version (He et al. 2015, arXiv:1512.03385): 7×7 stem, four stages of two
/// basic blocks, ReLU after the addition, a projection (option B) where the shape changes.
/// 11,175,370 parameters for one channel and 10 classes. Takes images of any size; to train on
/// batches of one sample they must be larger than 32×32, because BatchNorm needs two values a
/// channel.
Network make_resnet18_v1(const SampleShape& input, std::uint32_t classes) {
  return network_of(std::make_shared<Resnet18>(input.channels, classes));
}

}  // namespace syncopate::torch_backend
