#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "torch/layers.hpp"
#include "torch/network_module.hpp"

namespace syncopate::torch_backend {
namespace {

/// A 3×3 convolution of each channel by itself, then a 1×1 convolution to `filters` channels.
struct SeparableConvolution {
  std::int64_t filters;
  std::int64_t stride;
};

/// Table 1 of the paper.
constexpr SeparableConvolution mobilenet_v1_body[] = {
    {64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
    {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};

struct MobilenetV1 : torch::nn::Module {
  using Conv = torch::nn::Conv2dOptions;

  MobilenetV1(std::int64_t channels, std::int64_t classes)
      : features(register_module("features", convolutions(channels))),
        fc(register_module("fc", torch::nn::Linear(1024, classes))) {}

  static torch::nn::Sequential convolutions(std::int64_t channels) {
    torch::nn::Sequential layers(ConvBn(Conv(channels, 32, 3).stride(2).padding(1)));
    std::int64_t in = 32;
    for (const auto [filters, stride] : mobilenet_v1_body) {
      layers->push_back(ConvBn(Conv(in, in, 3).stride(stride).padding(1).groups(in)));
      layers->push_back(ConvBn(Conv(in, filters, 1)));
      in = filters;
    }
    return layers;
  }

  torch::Tensor forward(const torch::Tensor& images) {
    return fc(channel_means(features->forward(channels_last_on_cpu(images))));
  }

  torch::nn::Sequential features;
  torch::nn::Linear fc;
};

}  // namespace

/// MobileNet of width 1 (Howard et al. 2017, arXiv:1704.04861): a 3×3 convolution and 13 depthwise
/// separable ones, each with BatchNorm and ReLU. 4,231,976 parameters for three channels and 1000
/// classes. Takes images of any size; to train on batches of one sample they must be larger than
/// 32×32, because BatchNorm needs two values a channel.
Network make_mobilenet_v1(const SampleShape& input, std::uint32_t classes) {
  return network_of(std::make_shared<MobilenetV1>(input.channels, classes));
}

}  // namespace syncopate::torch_backend
