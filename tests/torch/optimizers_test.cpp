// Goal:   each optimizer follows its textbook rule, and gives the same result on pieces of the flat
//         vector as on the module's own parameters.
// Method: the first steps on one value are compared with closed formulas; 50 steps of the mlp,
//         whose vector is cut into several pieces, are compared with a plain module and optimizer.

#include "torch/optimizers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/errors.hpp"
#include "tests/torch/examples.hpp"
#include "torch/network_module.hpp"

namespace syncopate::torch_backend {
namespace {

using testing::ElementsAre;

/// Returns a parameter after each of two steps, from the value 1 with the gradients 0.5 and 0.25.
std::pair<double, double> two_steps(const OptimizerSettings& spec) {
  torch::Tensor value = torch::ones({1}, torch::requires_grad());
  const auto optimizer = make_optimizer(spec, {value});
  std::vector<double> values;
  for (const float gradient : {0.5F, 0.25F}) {
    value.mutable_grad() = torch::full({1}, gradient);
    optimizer->step();
    values.push_back(value.item<double>());
  }
  return {values[0], values[1]};
}

void expect_two_steps(const OptimizerSettings& spec, double first, double second) {
  SCOPED_TRACE(name_of_value(spec.optimizer));
  const auto [found_first, found_second] = two_steps(spec);
  EXPECT_NEAR(found_first, first, 1e-6);
  EXPECT_NEAR(found_second, second, 1e-6);
}

TEST(Optimizers, FollowTheirRules) {
  expect_two_steps({.optimizer = Optimizer::sgd, .learning_rate = 0.1}, 0.95, 0.925);
  expect_two_steps({.optimizer = Optimizer::momentum, .learning_rate = 0.1}, 0.95,
                   0.95 - 0.1 * (0.45 + 0.25));
  const double nesterov = 1 - 0.1 * (0.5 + 0.9 * 0.5);
  expect_two_steps({.optimizer = Optimizer::nesterov, .learning_rate = 0.1}, nesterov,
                   nesterov - 0.1 * (0.25 + 0.9 * 0.7));
  const double square = 0.01 * 0.25;
  expect_two_steps(
      {.optimizer = Optimizer::rmsprop, .learning_rate = 0.1}, 1 - 0.1 * 0.5 / std::sqrt(square),
      1 - 0.1 * 0.5 / std::sqrt(square) - 0.1 * 0.25 / std::sqrt(0.99 * square + 0.01 * 0.0625));
  expect_two_steps({.optimizer = Optimizer::adagrad, .learning_rate = 0.1}, 0.9,
                   0.9 - 0.1 * 0.25 / std::sqrt(0.25 + 0.0625));
  const double mean = (0.9 * 0.05 + 0.1 * 0.25) / (1 - 0.81);
  const double variance = (0.999 * 0.00025 + 0.001 * 0.0625) / (1 - 0.998001);
  expect_two_steps({.optimizer = Optimizer::adam, .learning_rate = 0.1}, 0.9,
                   0.9 - 0.1 * mean / std::sqrt(variance));
}

TEST(Optimizers, DecayWeights) {
  expect_two_steps({.optimizer = Optimizer::sgd, .learning_rate = 0.1, .weight_decay = 0.1},
                   1 - 0.1 * 0.6, 0.94 - 0.1 * (0.25 + 0.094));
  EXPECT_NEAR(
      two_steps({.optimizer = Optimizer::adam, .learning_rate = 0.1, .weight_decay = 0.1}).first,
      0.9, 1e-6);
  EXPECT_NEAR(
      two_steps({.optimizer = Optimizer::adamw, .learning_rate = 0.1, .weight_decay = 0.1}).first,
      1 * (1 - 0.01) - 0.1, 1e-6);
}

TEST(Optimizers, AreListed) {
  EXPECT_THAT(OptionTraits<Optimizer>::choices(),
              ElementsAre("sgd", "momentum", "nesterov", "rmsprop", "adam", "adamw", "adagrad"));
  EXPECT_EQ(usual_learning_rate(Optimizer::adam), 0.001);
}

std::string refusal(const OptimizerSettings& spec) {
  try {
    make_optimizer(spec, {torch::ones({1})});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "none";
}

TEST(Optimizers, RefuseWhatMakesNoSense) {
  EXPECT_EQ(refusal({.optimizer = Optimizer::sgd, .learning_rate = -1}),
            "learning rate -1 of optimizer sgd: expected a number from 0 to below inf");
  EXPECT_EQ(refusal({.optimizer = Optimizer::adam, .learning_rate = std::nan("")}),
            "learning rate nan of optimizer adam: expected a number from 0 to below inf");
  EXPECT_EQ(refusal({.optimizer = Optimizer::momentum, .momentum = 1}),
            "momentum 1 of optimizer momentum: expected a number from 0 to below 1");
  EXPECT_EQ(refusal({.optimizer = Optimizer::nesterov, .momentum = 0}),
            "optimizer nesterov with momentum 0: expected more, or optimizer sgd");
}

class EachOptimizer : public testing::TestWithParam<Named<Optimizer>> {};

TEST_P(EachOptimizer, DoesOverPiecesWhatItDoesOverTensors) {
  const NetworkSettings spec{.name = "mlp", .input = {1, 28, 28}};
  const OptimizerSettings rule = with_usual_rate(GetParam().value);
  ModuleReplica replica(
      {.build = [&] { return build_network(spec); }, .make_optimizer = with_optimizer(rule)});
  replica.initialise(1);
  torch::manual_seed(1);
  const Network plain = build_network(spec);
  const auto optimizer = make_optimizer(rule, plain.module->parameters());
  for (std::uint64_t step = 0; step < 50; ++step) {
    const Batch batch = random_batch(step, spec.input, 4);
    replica.backward(batch);
    replica.local_step();
    optimizer->zero_grad();
    torch::cross_entropy_loss(plain.forward(features_of(batch)), torch::tensor(batch.labels))
        .backward();
    optimizer->step();
  }
  const std::vector<float> expected = flattened(plain.module->parameters());
  const std::vector<float> found = values_of(replica, ReplicaVector::params);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], 1e-6 * std::abs(expected[i]) + 1e-9) << "value " << i;
  }
}

TEST_P(EachOptimizer, StandsStillAtALearningRateOf0) {
  Watched<Tiny> watched({.make_optimizer = with_optimizer(with_usual_rate(GetParam().value))});
  const std::vector<float> before = values_of(watched.replica, ReplicaVector::params);
  watched.replica.set_learning_rate(0);
  watched.replica.backward(tiny_batch(1));
  watched.replica.local_step();
  EXPECT_EQ(values_of(watched.replica, ReplicaVector::params), before);
  watched.replica.set_learning_rate(0.01);
  watched.replica.local_step();
  EXPECT_NE(values_of(watched.replica, ReplicaVector::params), before);
}

INSTANTIATE_TEST_SUITE_P(Names, EachOptimizer, testing::ValuesIn(names_of(Optimizer{})),
                         [](const auto& name) { return std::string(name.param.name); });

}  // namespace
}  // namespace syncopate::torch_backend
