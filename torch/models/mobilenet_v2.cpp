#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include <memory>

#include "torch/layers.hpp"
#include "torch/network_module.hpp"

namespace syncopate::torch_backend {
namespace {

/// Widens by a 1×1 convolution, filters each channel by itself, and narrows without an activation.
/// The input is added where the shape stays.
struct InvertedResidual : torch::nn::Module {
  InvertedResidual(std::int64_t in, std::int64_t out, std::int64_t factor, std::int64_t stride)
      : is_added(stride == 1 && in == out) {
    using Conv = torch::nn::Conv2dOptions;
    const std::int64_t wide = in * factor;
    layers = register_module(
        "layers",
        torch::nn::Sequential(
            ConvBn(Conv(in, wide, 1), Activation::relu6),
            ConvBn(Conv(wide, wide, 3).stride(stride).padding(1).groups(wide), Activation::relu6),
            ConvBn(Conv(wide, out, 1), Activation::none)));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor y = layers->forward(x);
    return is_added ? y.add_(x) : y;
  }

  bool is_added;
  torch::nn::Sequential layers{nullptr};
};

struct InvertedResiduals {
  std::int64_t factor, filters, blocks, stride;  ///< t, c, n and s of the paper
};

/// Table 2 of the paper.
constexpr InvertedResiduals mobilenet_v2_body[] = {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2},
                                                   {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2},
                                                   {6, 320, 1, 1}};

struct MobilenetV2 : torch::nn::Module {
  using Conv = torch::nn::Conv2dOptions;

  MobilenetV2(std::int64_t channels, std::int64_t classes)
      : features(register_module("features", convolutions(channels))),
        classifier(
            register_module("classifier", torch::nn::Conv2d(Conv(1280, classes, 1).bias(false)))) {}

  static torch::nn::Sequential convolutions(std::int64_t channels) {
    torch::nn::Sequential layers(
        ConvBn(Conv(channels, 32, 3).stride(2).padding(1), Activation::relu6));
    std::int64_t in = 32;
    for (const auto [factor, filters, blocks, stride] : mobilenet_v2_body) {
      for (std::int64_t block = 0; block < blocks; ++block) {
        layers->push_back(
            std::make_shared<InvertedResidual>(in, filters, factor, block == 0 ? stride : 1));
        in = filters;
      }
    }
    layers->push_back(ConvBn(Conv(in, 1280, 1), Activation::relu6));
    return layers;
  }

  torch::Tensor forward(const torch::Tensor& images) {
    const torch::Tensor x = features->forward(channels_last_on_cpu(images));
    return classifier(torch::adaptive_avg_pool2d(x, {1, 1})).flatten(1);
  }

  torch::nn::Sequential features;
  torch::nn::Conv2d classifier;
};

}  // namespace

/// MobileNetV2 of width 1 (Sandler et al. 2018, arXiv:1801.04381): 17 inverted residual blocks with
/// linear bottlenecks, and ReLU6. As in Gluon's model, the first block widens as well (by 1), and
/// the classifier is a 1×1 convolution without bias. 3,504,960 parameters for three channels and
/// 1000 classes. Takes images of any size; to train on batches of one sample they must be larger
/// than 32×32, because BatchNorm needs two values a channel.
Network make_mobilenet_v2(const SampleShape& input, std::uint32_t classes) {
  return network_of(std::make_shared<MobilenetV2>(input.channels, classes));
}

}  // namespace syncopate::torch_backend
