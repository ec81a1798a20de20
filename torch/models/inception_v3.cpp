#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "torch/layers.hpp"
#include "torch/network_module.hpp"
#include "torch/seeded_dropout.hpp"

namespace syncopate::torch_backend {
namespace {

using torch::nn::Sequential;

/// A convolution that keeps the size.
ConvBn keeping_conv(std::int64_t in, std::int64_t out, std::array<std::int64_t, 2> kernel) {
  return ConvBn(torch::nn::Conv2dOptions(in, out, {kernel[0], kernel[1]})
                    .padding({kernel[0] / 2, kernel[1] / 2}),
                Activation::relu, /*epsilon=*/1e-3);
}

ConvBn conv1x1(std::int64_t in, std::int64_t out) {
  return keeping_conv(in, out, {1, 1});
}

ConvBn conv3x3(std::int64_t in, std::int64_t out) {
  return keeping_conv(in, out, {3, 3});
}

/// Without padding: the border is lost.
ConvBn inner_conv3x3(std::int64_t in, std::int64_t out, std::int64_t stride = 1) {
  return ConvBn(torch::nn::Conv2dOptions(in, out, 3).stride(stride), Activation::relu, 1e-3);
}

ConvBn halving_conv3x3(std::int64_t in, std::int64_t out) {
  return inner_conv3x3(in, out, 2);
}

torch::nn::AvgPool2d average_pool() {
  return torch::nn::AvgPool2d(torch::nn::AvgPool2dOptions(3).stride(1).padding(1));
}

torch::nn::MaxPool2d halving_max_pool() {
  return torch::nn::MaxPool2d(torch::nn::MaxPool2dOptions(3).stride(2));
}

/// Concatenates the channels of branches over one input.
struct InceptionBranches : torch::nn::Module {
  explicit InceptionBranches(std::vector<Sequential> layers) : branches(std::move(layers)) {
    for (std::size_t i = 0; i < branches.size(); ++i) {
      register_module("branch" + std::to_string(i), branches[i]);
    }
  }

  torch::Tensor forward(const torch::Tensor& x) {
    std::vector<torch::Tensor> outputs;
    for (Sequential& branch : branches) outputs.push_back(branch->forward(x));
    return torch::cat(outputs, 1);
  }

  std::vector<Sequential> branches;
};

using Branches = std::shared_ptr<InceptionBranches>;

Branches concatenated(std::vector<Sequential> branches) {
  return std::make_shared<InceptionBranches>(std::move(branches));
}

/// Figure 5 of the paper, with 5×5 as such. 224 channels and those of the pooling.
Branches inception_a(std::int64_t in, std::int64_t pooled) {
  return concatenated({Sequential(conv1x1(in, 64)),
                       Sequential(conv1x1(in, 48), keeping_conv(48, 64, {5, 5})),
                       Sequential(conv1x1(in, 64), conv3x3(64, 96), conv3x3(96, 96)),
                       Sequential(average_pool(), conv1x1(in, pooled))});
}

/// Figure 10: from 35×35 to 17×17. 480 channels and those of the input.
Branches reduction_a(std::int64_t in) {
  return concatenated({Sequential(halving_conv3x3(in, 384)),
                       Sequential(conv1x1(in, 64), conv3x3(64, 96), halving_conv3x3(96, 96)),
                       Sequential(halving_max_pool())});
}

/// Figure 6 with n = 7: 7×7 in two steps, of `mid` channels. 768 channels.
Branches inception_b(std::int64_t mid) {
  constexpr std::int64_t in = 768;
  const auto row = [](std::int64_t from, std::int64_t to) {
    return keeping_conv(from, to, {1, 7});
  };
  const auto column = [](std::int64_t from, std::int64_t to) {
    return keeping_conv(from, to, {7, 1});
  };
  return concatenated({Sequential(conv1x1(in, 192)),
                       Sequential(conv1x1(in, mid), row(mid, mid), column(mid, 192)),
                       Sequential(conv1x1(in, mid), column(mid, mid), row(mid, mid),
                                  column(mid, mid), row(mid, 192)),
                       Sequential(average_pool(), conv1x1(in, 192))});
}

/// From 17×17 to 8×8. 1280 channels.
Branches reduction_b() {
  constexpr std::int64_t in = 768;
  return concatenated({Sequential(conv1x1(in, 192), halving_conv3x3(192, 320)),
                       Sequential(conv1x1(in, 192), keeping_conv(192, 192, {1, 7}),
                                  keeping_conv(192, 192, {7, 1}), halving_conv3x3(192, 192)),
                       Sequential(halving_max_pool())});
}

/// A 1×3 and a 3×1 convolution of one input.
Branches row_and_column(std::int64_t in) {
  return concatenated(
      {Sequential(keeping_conv(in, 384, {1, 3})), Sequential(keeping_conv(in, 384, {3, 1}))});
}

/// Figure 7: the wide blocks at 8×8. 2048 channels.
Branches inception_c(std::int64_t in) {
  return concatenated({Sequential(conv1x1(in, 320)),
                       Sequential(conv1x1(in, 384), row_and_column(384)),
                       Sequential(conv1x1(in, 448), conv3x3(448, 384), row_and_column(384)),
                       Sequential(average_pool(), conv1x1(in, 192))});
}

struct InceptionV3 : torch::nn::Module {
  InceptionV3(std::int64_t channels, std::int64_t classes)
      : stem(
            register_module("stem", Sequential(halving_conv3x3(channels, 32), inner_conv3x3(32, 32),
                                               conv3x3(32, 64), halving_max_pool(), conv1x1(64, 80),
                                               inner_conv3x3(80, 192), halving_max_pool()))),
        mixed(register_module(
            "mixed", Sequential(inception_a(192, 32), inception_a(256, 64), inception_a(288, 64),
                                reduction_a(288),                                      //
                                inception_b(128), inception_b(160), inception_b(160),  //
                                inception_b(192), reduction_b(),                       //
                                inception_c(1280), inception_c(2048)))),
        dropout(register_module("dropout", SeededDropout(0.5))),
        fc(register_module("fc", torch::nn::Linear(2048, classes))) {}

  torch::Tensor forward(const torch::Tensor& images) {
    const torch::Tensor x = mixed->forward(stem->forward(images));
    return fc(dropout(channel_means(x)));
  }

  Sequential stem, mixed;
  SeededDropout dropout;
  torch::nn::Linear fc;
};

}  // namespace

/// Inception-v3 (Szegedy et al. 2015, arXiv:1512.00567), with the widths of the authors' released
/// model, without the auxiliary classifier: a stem of five convolutions, three blocks at 35×35,
/// four at 17×17 and two at 8×8 (of images of 299×299), dropout of one half before the classifier.
/// 23,834,568 parameters for three channels and 1000 classes.
Network make_inception_v3(const SampleShape& input, std::uint32_t classes) {
  return network_of(std::make_shared<InceptionV3>(input.channels, classes));
}

}  // namespace syncopate::torch_backend
