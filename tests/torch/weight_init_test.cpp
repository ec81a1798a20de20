// Goal:   the initial weights of a network have the distribution that --weight-init names.
// Method: variances and bounds of large layers are compared with the formulas; draws with equal
//         seeds are compared.

#include "torch/weight_init.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/torch/examples.hpp"
#include "torch/factory.hpp"
#include "torch/network_module.hpp"

namespace syncopate::torch_backend {
namespace {

std::map<std::string, torch::Tensor> parameters_of(const std::string& name, WeightInit init,
                                                   SampleShape input) {
  torch::manual_seed(1);
  const Network network = build_network({.name = name, .input = input, .weight_init = init});
  std::map<std::string, torch::Tensor> parameters;
  for (const auto& item : network.module->named_parameters()) {
    parameters[item.key()] = item.value().detach();
  }
  return parameters;
}

double variance(const torch::Tensor& values) {
  return values.square().mean().item<double>();
}

double largest(const torch::Tensor& values) {
  return values.abs().max().item<double>();
}

/// Checks the distributions of a weight. In its layer, each output depends on `inputs` values, and
/// each input affects `outputs` values.
void expect_distributions(const std::string& network, const std::string& weight, double inputs,
                          double outputs) {
  const SampleShape input{1, 28, 28};
  const auto drawn = [&](WeightInit init) { return parameters_of(network, init, input)[weight]; };
  const torch::Tensor standard = drawn(WeightInit::standard);
  EXPECT_NEAR(variance(standard) * 3 * inputs, 1, 0.03);
  const torch::Tensor xavier = drawn(WeightInit::xavier);
  EXPECT_NEAR(variance(xavier) * (inputs + outputs) / 2, 1, 0.03);
  EXPECT_LE(largest(xavier), std::sqrt(6 / (inputs + outputs)) * 1.0001) << "it is uniform";
  const torch::Tensor he = drawn(WeightInit::he);
  EXPECT_NEAR(variance(he) * inputs / 2, 1, 0.03);
  EXPECT_GT(largest(he), 3 * std::sqrt(2 / inputs)) << "it is normal";
}

TEST(WeightInitOfNetworks, HasTheVarianceOfItsFormula) {
  expect_distributions("mlp", "fc1.weight", 784, 256);
  expect_distributions("resnet9", "layer2.0.conv.weight", 9 * 128, 9 * 256);
}

TEST(WeightInitOfNetworks, SetsBiasesTo0AndLeavesBatchNormAlone) {
  for (const WeightInit init : {WeightInit::xavier, WeightInit::he}) {
    for (const auto& [name, values] : parameters_of("mobilenet-v1", init, {3, 32, 32})) {
      if (name.ends_with("bn.weight")) {
        EXPECT_TRUE(values.eq(1).all().item<bool>()) << name;
      } else {
        EXPECT_EQ(values.eq(0).all().item<bool>(), name.ends_with("bias")) << name;
      }
    }
  }
}

TEST(WeightInitOfNetworks, FollowsFromTheSeed) {
  const NetworkSettings he{.name = "lenet5", .input = {1, 28, 28}, .weight_init = WeightInit::he};
  const auto first = make_replica(he, {.optimizer = Optimizer::sgd}, "cpu");
  const auto second = make_replica(he, {.optimizer = Optimizer::sgd}, "cpu");
  first->initialise(7);
  second->initialise(7);
  EXPECT_EQ(values_of(*first, ReplicaVector::params), values_of(*second, ReplicaVector::params));
  second->initialise(8);
  EXPECT_NE(values_of(*first, ReplicaVector::params), values_of(*second, ReplicaVector::params));
}

}  // namespace
}  // namespace syncopate::torch_backend
