#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include <memory>

#include "torch/layers.hpp"
#include "torch/network_module.hpp"

namespace syncopate::torch_backend {
namespace {

ConvBn conv3x3_bn(std::int64_t in, std::int64_t out) {
  return ConvBn(torch::nn::Conv2dOptions(in, out, 3).padding(1));
}

/// Adds two convolutions of the input to the input.
struct Resnet9Residual : torch::nn::Module {
  explicit Resnet9Residual(std::int64_t filters)
      : layers(register_module("layers", torch::nn::Sequential(conv3x3_bn(filters, filters),
                                                               conv3x3_bn(filters, filters)))) {}

  torch::Tensor forward(const torch::Tensor& x) { return layers->forward(x) + x; }

  torch::nn::Sequential layers;
};

struct Resnet9 : torch::nn::Module {
  Resnet9(std::int64_t channels, std::int64_t classes)
      : prep(register_module("prep", conv3x3_bn(channels, 64))),
        layer1(register_module("layer1",
                               torch::nn::Sequential(conv3x3_bn(64, 128), torch::nn::MaxPool2d(2),
                                                     std::make_shared<Resnet9Residual>(128)))),
        layer2(register_module(
            "layer2", torch::nn::Sequential(conv3x3_bn(128, 256), torch::nn::MaxPool2d(2)))),
        layer3(register_module("layer3",
                               torch::nn::Sequential(conv3x3_bn(256, 512), torch::nn::MaxPool2d(2),
                                                     std::make_shared<Resnet9Residual>(512)))),
        fc(register_module(
            "fc", torch::nn::Linear(torch::nn::LinearOptions(512, classes).bias(false)))) {}

  torch::Tensor forward(const torch::Tensor& images) {
    torch::Tensor x = prep(images);
    x = layer3->forward(layer2->forward(layer1->forward(x)));
    return fc(torch::amax(x, {2, 3})).mul_(0.125);
  }

  ConvBn prep;
  torch::nn::Sequential layer1, layer2, layer3;
  torch::nn::Linear fc;
};

}  // namespace

/// ResNet-9 for CIFAR, as of DAWNBench (Page 2018, "How to train your ResNet"): a convolution of 64
/// filters, three layers of 128, 256 and 512 filters that halve the size, the first and the last
/// with a residual block, the maximum of each channel, and a linear layer without bias, whose
/// outputs are divided by 8. 6,573,120 parameters for three channels and 10 classes.
Network make_resnet9(const SampleShape& input, std::uint32_t classes) {
  return network_of(std::make_shared<Resnet9>(input.channels, classes));
}

}  // namespace syncopate::torch_backend
