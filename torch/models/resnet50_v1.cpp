#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <memory>

#include "torch/layers.hpp"
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

struct Resnet50V1 : torch::nn::Module {
  Resnet50V1(std::int64_t channels, std::int64_t classes)
      : conv1(register_module("conv1", convolution(channels, 64, 7, 2))),
        bn1(register_module("bn1", torch::nn::BatchNorm2d(64))),
        layer1(register_module("layer1", stage(64, 256, 3, 1))),
        layer2(register_module("layer2", stage(256, 512, 4, 2))),
        layer3(register_module("layer3", stage(512, 1024, 6, 2))),
        layer4(register_module("layer4", stage(1024, 2048, 3, 2))),
        fc(register_module("fc", torch::nn::Linear(2048, classes))) {}

  static torch::nn::Sequential stage(std::int64_t in, std::int64_t out, int blocks,
                                     std::int64_t stride) {
    torch::nn::Sequential layers(std::make_shared<BottleneckV1>(in, out, stride));
    for (int block = 1; block < blocks; ++block) {
      layers->push_back(std::make_shared<BottleneckV1>(out, out, 1));
    }
    return layers;
  }

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

/// ResNet-50 in its first version (He et al. 2015, arXiv:1512.03385, table 1): 7×7 stem, stages of
/// 3, 4, 6 and 3 bottleneck blocks, ReLU after the addition, a projection (option B) where the
/// shape changes. Two of three convolutions of a block have biases, as in Gluon's model. 25,575,912
/// parameters for three channels and 1000 classes. Takes images of any size; to train on batches of
/// one sample they must be larger than 32×32, because BatchNorm needs two values a channel.
Network make_resnet50_v1(const SampleShape& input, std::uint32_t classes) {
  return network_of(std::make_shared<Resnet50V1>(input.channels, classes));
}

}  // namespace syncopate::torch_backend
