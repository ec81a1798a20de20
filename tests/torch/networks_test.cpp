// Goal:   the networks are the published ones, and their figures are right.
// Method: the test compares parameters and multiply-adds with values computed by hand, layer by
//         layer, and the shapes of outputs; a network refuses inputs that it cannot take.

#include "spec/networks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/conv.h>

#include <algorithm>

#include "base/errors.hpp"
#include "torch/factory.hpp"
#include "torch/network_module.hpp"
#include "torch/operators.hpp"

namespace syncopate::torch_backend {
namespace {

using testing::ElementsAre;

constexpr SampleShape fashion{1, 28, 28};
constexpr SampleShape colour{3, 32, 32};

TEST(Networks, AreListed) {
  EXPECT_THAT(network_names(),
              ElementsAre("mlp", "lenet5", "alexnet", "resnet9", "resnet18-v1", "resnet50-v1",
                          "resnet50-v2", "mobilenet-v1", "mobilenet-v2", "inception-v3"));
}

TEST(Networks, HaveTheMlpsFigures) {
  const NetworkFacts facts = network_facts({.name = "mlp", .input = fashion});
  EXPECT_EQ(facts.parameters, 784U * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10);
  EXPECT_EQ(facts.buffers, 0U);
  EXPECT_EQ(facts.multiply_adds, 784U * 256 + 256 * 128 + 128 * 10);
}

TEST(Networks, HaveLenet5sFigures) {
  const NetworkFacts facts = network_facts({.name = "lenet5", .input = fashion});
  EXPECT_EQ(facts.parameters, 61706U);
  EXPECT_EQ(facts.buffers, 0U);
  const std::uint64_t conv1 = 28 * 28 * 6 * 25;
  const std::uint64_t conv2 = 10 * 10 * 16 * 6 * 25;
  EXPECT_EQ(conv1, 117600U);
  EXPECT_EQ(conv2, 240000U);
  EXPECT_EQ(facts.multiply_adds, conv1 + conv2 + 400 * 120 + 120 * 84 + 84 * 10);
  EXPECT_EQ(network_facts({.name = "lenet5", .input = colour, .classes = 100}).parameters,
            3U * 6 * 25 + 6 + 2416 + 576 * 120 + 120 + 10164 + 84 * 100 + 100);
}

TEST(Networks, HaveResnet18sFigures) {
  const NetworkFacts facts = network_facts({.name = "resnet18-v1", .input = fashion});
  EXPECT_EQ(facts.parameters, 11175370U);
  EXPECT_EQ(facts.buffers, 2U * (5 * 64 + 5 * 128 + 5 * 256 + 5 * 512));
  // The stem has outputs of 14×14; the pooling and the stages have 7×7, 4×4, 2×2 and 1×1.
  const std::uint64_t stem = 14 * 14 * 64 * 49;
  const std::uint64_t stage1 = 4 * (7 * 7 * 64 * 64 * 9);
  const std::uint64_t stage2 = 4 * 4 * 128 * (64 * 9 + 3 * 128 * 9 + 64);
  const std::uint64_t stage3 = 2 * 2 * 256 * (128 * 9 + 3 * 256 * 9 + 128);
  const std::uint64_t stage4 = 512 * (256 * 9 + 3 * 512 * 9 + 256);
  EXPECT_EQ(facts.multiply_adds, stem + stage1 + stage2 + stage3 + stage4 + 512 * 10);
}

TEST(Networks, HaveResnet9sFigures) {
  const NetworkFacts facts = network_facts({.name = "resnet9", .input = colour});
  const std::uint64_t residuals = 2 * 9 * 128 * 128 + 2 * 9 * 512 * 512;
  const std::uint64_t halvings = 9 * (64 * 128 + 128 * 256 + 256 * 512);
  const std::uint64_t channels = 64 + 3 * 128 + 256 + 3 * 512;
  EXPECT_EQ(facts.parameters, 27U * 64 + residuals + halvings + 2 * channels + 512 * 10);
  EXPECT_EQ(facts.parameters, 6573120U);
  EXPECT_EQ(facts.buffers, 2 * channels);
}

struct Published {
  std::string_view name;
  std::uint64_t values;  ///< in Gluon's file: parameters, running means and variances
  std::uint64_t multiply_adds;
};

/// The papers state these multiply-adds: 569 million for MobileNet; 300 million for MobileNetV2,
/// whose first block needs 13 million more here; 3.86 billion for ResNet-50.
constexpr Published published[] = {
    {"alexnet", 61100840, 714188480},       {"resnet18-v1", 11699112, 1814073344},
    {"resnet50-v1", 25629032, 3857973248},  {"resnet50-v2", 25595060, 4089184256},
    {"mobilenet-v1", 4253864, 568740352},   {"mobilenet-v2", 3539136, 313619328},
    {"inception-v3", 23869000, 5713216096},
};

TEST(Networks, HaveThePublishedFiguresForImagenet) {
  const std::vector<NetworkFacts> all = all_network_facts({3, 0, 0}, 1000);
  for (const auto& [name, values, multiply_adds] : published) {
    const auto found = std::ranges::find(all, name, &NetworkFacts::name);
    ASSERT_NE(found, all.end()) << name;
    EXPECT_EQ(found->parameters + found->buffers, values) << name;
    EXPECT_EQ(found->multiply_adds, multiply_adds) << name;
    EXPECT_EQ(found->input.height, name == "inception-v3" ? 299U : 224U) << name;
  }
  for (const NetworkFacts& facts : all) {
    EXPECT_EQ(facts.buffers > 0, network_named(facts.name).has_batch_norm) << facts.name;
  }
}

std::string refusal(const NetworkSettings& spec) {
  try {
    network_facts(spec);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "none";
}

TEST(Networks, RefuseWhatTheyCannotTake) {
  EXPECT_EQ(
      refusal({.name = "lenet", .input = fashion}),
      "unknown network \"lenet\": expected one of mlp, lenet5, alexnet, resnet9, resnet18-v1, "
      "resnet50-v1, resnet50-v2, mobilenet-v1, mobilenet-v2, inception-v3");
  EXPECT_EQ(
      refusal({.name = "lenet5", .input = {1, 11, 28}}),
      "lenet5 for images of 11x28: expected at least 12x12; take images of that size or more");
  EXPECT_EQ(
      refusal({.name = "alexnet", .input = {3, 224, 62}}),
      "alexnet for images of 224x62: expected at least 63x63; take images of that size or more");
  EXPECT_EQ(refusal({.name = "inception-v3", .input = colour}),
            "inception-v3 for images of 32x32: expected at least 75x75; take images of that size "
            "or more");
  EXPECT_EQ(refusal({.name = "lenet5", .input = {1, 12, 12}}), "none");
  EXPECT_EQ(refusal({.name = "mlp", .input = {0, 28, 28}}),
            "mlp for 0x28x28 inputs and 10 classes: expected none to be 0");
  EXPECT_EQ(refusal({.name = "resnet18-v1", .input = fashion, .classes = 0}),
            "resnet18-v1 for 1x28x28 inputs and 0 classes: expected none to be 0");
}

/// A network with a grouped and a transposed convolution, and a matrix product outside a layer.
struct Oddities : torch::nn::Module {
  Oddities()
      : grouped(register_module("grouped",
                                torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 8, 3).groups(2)))),
        transposed(register_module(
            "transposed", torch::nn::ConvTranspose2d(torch::nn::ConvTranspose2dOptions(8, 2, 3)))) {
  }

  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor rows = transposed(grouped(x)).flatten(0, 1);
    return torch::bmm(rows, rows.transpose(1, 2));
  }

  torch::nn::Conv2d grouped;
  torch::nn::ConvTranspose2d transposed;
};

TEST(MultiplyAdds, AreCountedForAnyModule) {
  const std::uint64_t grouped = 4 * 4 * 8 * (4 / 2 * 9);  // 6×6 to 4×4
  const std::uint64_t transposed = 4 * 4 * 8 * (2 * 9);   // back to 6×6
  const std::uint64_t products = 2 * 6 * 6 * 6;           // two matrices of 6×6 by 6×6
  const Network network = network_of(std::make_shared<Oddities>());
  EXPECT_EQ(multiply_adds(network, {4, 6, 6}), grouped + transposed + products);
  EXPECT_TRUE(network.module->is_training());
}

}  // namespace
}  // namespace syncopate::torch_backend
