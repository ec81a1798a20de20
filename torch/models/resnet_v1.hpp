#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <array>
#include <cstdint>
#include <memory>

#include "torch/layers.hpp"

namespace syncopate::torch_backend {

/// Residual networks, first version (He et al. 2015, arXiv:1512.03385, table 1): a 7×7 stem,
/// four stages of residual blocks, the last three of which begin with stride 2, and a linear layer.
///
/// `Block`: made from channels in, channels out, and stride.
/// Shapes:  images of any size; to train on batches of one sample they must be larger than 32×32,
///          because BatchNorm needs two values a channel.
template <class Block>
struct ResnetV1 : torch::nn::Module {
  struct Stage {
    std::int64_t channels;
    int blocks;
  };

  ResnetV1(std::int64_t channels, std::int64_t classes, const std::array<Stage, 4>& stages)
      : conv1(register_module("conv1", convolution(channels, 64, 7, 2))),
        bn1(register_module("bn1", torch::nn::BatchNorm2d(64))),
        layer1(register_module("layer1", stage(64, stages[0], 1))),
        layer2(register_module("layer2", stage(stages[0].channels, stages[1], 2))),
        layer3(register_module("layer3", stage(stages[1].channels, stages[2], 2))),
        layer4(register_module("layer4", stage(stages[2].channels, stages[3], 2))),
        fc(register_module("fc", torch::nn::Linear(stages[3].channels, classes))) {}

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

 private:
  static torch::nn::Sequential stage(std::int64_t in, const Stage& stage, std::int64_t stride) {
    torch::nn::Sequential blocks(std::make_shared<Block>(in, stage.channels, stride));
    for (int block = 1; block < stage.blocks; ++block) {
      blocks->push_back(std::make_shared<Block>(stage.channels, stage.channels, 1));
    }
    return blocks;
  }
};

}  // namespace syncopate::torch_backend
