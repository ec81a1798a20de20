#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include "torch/network_module.hpp"
#include "torch/seeded_dropout.hpp"

namespace syncopate::torch_backend {
namespace {

struct Alexnet : torch::nn::Module {
  using Conv = torch::nn::Conv2dOptions;

  Alexnet(std::int64_t channels, std::int64_t classes)
      : features(register_module("features", convolutions(channels))),
        classifier(register_module(
            "classifier",
            torch::nn::Sequential(SeededDropout(0.5), torch::nn::Linear(256 * 6 * 6, 4096), relu(),
                                  SeededDropout(0.5), torch::nn::Linear(4096, 4096), relu(),
                                  torch::nn::Linear(4096, classes)))) {}

  // ReLU after the pooling gives the same values and gradients for a quarter of the work.
  static torch::nn::Sequential convolutions(std::int64_t channels) {
    using torch::nn::Conv2d;
    return torch::nn::Sequential(                                             // 224×224
        Conv2d(Conv(channels, 64, 11).stride(4).padding(2)), pool(), relu(),  // 27×27
        Conv2d(Conv(64, 192, 5).padding(2)), pool(), relu(),                  // 13×13
        Conv2d(Conv(192, 384, 3).padding(1)), relu(),                         // 13×13
        Conv2d(Conv(384, 256, 3).padding(1)), relu(),                         // 13×13
        Conv2d(Conv(256, 256, 3).padding(1)), pool(), relu());                // 6×6
  }

  static torch::nn::MaxPool2d pool() {
    return torch::nn::MaxPool2d(torch::nn::MaxPool2dOptions(3).stride(2));
  }

  static torch::nn::ReLU relu() { return torch::nn::ReLU(torch::nn::ReLUOptions().inplace(true)); }

  torch::Tensor forward(const torch::Tensor& images) {
    const torch::Tensor x = features->forward(images);
    return classifier->forward(torch::adaptive_avg_pool2d(x, {6, 6}).flatten(1));
  }

  torch::nn::Sequential features, classifier;
};

}  // namespace

/// AlexNet as it is trained on one device (Krizhevsky 2014, arXiv:1404.5997), without local
/// response normalization: five convolutions of 64 to 384 filters, three overlapping poolings of
/// 3×3 with a stride of 2, linear layers of 4096, 4096 and `classes` units, dropout of one half
/// before the first two. The features of images of other sizes than 224×224 are averaged to 6×6.
/// 61,100,840 parameters for three channels and 1000 classes.
Network make_alexnet(const SampleShape& input, std::uint32_t classes) {
  return network_of(std::make_shared<Alexnet>(input.channels, classes));
}

}  // namespace syncopate::torch_backend
