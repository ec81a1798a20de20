#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <memory>

#include "torch/layers.hpp"
#include "torch/network_module.hpp"

namespace syncopate::torch_backend {
namespace {

/// BatchNorm and ReLU before each of three convolutions, 1×1, 3×3 and 1×1, around which the input
/// is added. Where the shape changes, a 1×1 convolution projects the activations of the first
/// BatchNorm.
struct BottleneckV2 : torch::nn::Module {
  BottleneckV2(std::int64_t in, std::int64_t out, std::int64_t stride)
      : bn1(register_module("bn1", torch::nn::BatchNorm2d(in))),
        conv1(register_module("conv1", convolution(in, out / 4, 1, 1))),
        bn2(register_module("bn2", torch::nn::BatchNorm2d(out / 4))),
        conv2(register_module("conv2", convolution(out / 4, out / 4, 3, stride))),
        bn3(register_module("bn3", torch::nn::BatchNorm2d(out / 4))),
        conv3(register_module("conv3", convolution(out / 4, out, 1, 1))) {
    if (in == out) return;
    downsample = register_module("downsample", convolution(in, out, 1, stride));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor activated = bn1(x).relu_();
    torch::Tensor y = bn2(conv1(activated)).relu_();
    y = bn3(conv2(y)).relu_();
    return conv3(y).add_(downsample ? downsample(activated) : x);
  }

  torch::nn::BatchNorm2d bn1;
  torch::nn::Conv2d conv1;
  torch::nn::BatchNorm2d bn2;
  torch::nn::Conv2d conv2;
  torch::nn::BatchNorm2d bn3;
  torch::nn::Conv2d conv3;
  torch::nn::Conv2d downsample{nullptr};
};

struct Resnet50V2 : torch::nn::Module {
  Resnet50V2(std::int64_t channels, std::int64_t classes)
      : data_bn(register_module("data_bn", frozen_batch_norm(channels))),
        conv1(register_module("conv1", convolution(channels, 64, 7, 2))),
        bn1(register_module("bn1", torch::nn::BatchNorm2d(64))),
        layer1(register_module("layer1", stage(64, 256, 3, 1))),
        layer2(register_module("layer2", stage(256, 512, 4, 2))),
        layer3(register_module("layer3", stage(512, 1024, 6, 2))),
        layer4(register_module("layer4", stage(1024, 2048, 3, 2))),
        bn2(register_module("bn2", torch::nn::BatchNorm2d(2048))),
        fc(register_module("fc", torch::nn::Linear(2048, classes))) {}

  /// BatchNorm whose scale stays 1 and whose shift stays 0.
  static torch::nn::BatchNorm2d frozen_batch_norm(std::int64_t channels) {
    torch::nn::BatchNorm2d norm(channels);
    norm->weight.set_requires_grad(false);
    norm->bias.set_requires_grad(false);
    return norm;
  }

  static torch::nn::Sequential stage(std::int64_t in, std::int64_t out, int blocks,
                                     std::int64_t stride) {
    torch::nn::Sequential layers(std::make_shared<BottleneckV2>(in, out, stride));
    for (int block = 1; block < blocks; ++block) {
      layers->push_back(std::make_shared<BottleneckV2>(out, out, 1));
    }
    return layers;
  }

  torch::Tensor forward(const torch::Tensor& images) {
    torch::Tensor x = bn1(conv1(data_bn(images))).relu_();
    x = torch::max_pool2d(x, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1);
    x = layer4->forward(layer3->forward(layer2->forward(layer1->forward(x))));
    return fc(channel_means(bn2(x).relu_()));
  }

  torch::nn::BatchNorm2d data_bn;
  torch::nn::Conv2d conv1;
  torch::nn::BatchNorm2d bn1;
  torch::nn::Sequential layer1, layer2, layer3, layer4;
  torch::nn::BatchNorm2d bn2;
  torch::nn::Linear fc;
};

}  // namespace

/// ResNet-50 in its second version (He et al. 2016, arXiv:1603.05027): the stages of the first one,
/// with BatchNorm and ReLU before each convolution instead of behind it, and once more at the end.
/// As in Gluon's model, BatchNorm without trained scale and shift normalises the images, and the
/// 3×3 convolution of a block has the stride. 25,549,480 trained parameters for three channels and
/// 1000 classes. Takes images of any size; to train on batches of one sample they must be larger
/// than 32×32, because BatchNorm needs two values a channel.
Network make_resnet50_v2(const SampleShape& input, std::uint32_t classes) {
  return network_of(std::make_shared<Resnet50V2>(input.channels, classes));
}

}  // namespace syncopate::torch_backend
