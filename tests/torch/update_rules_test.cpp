// Goal:   each update rule of a server computes the same as libtorch's optimizer of the same name,
//         and has the same state.
// Method: a hundred steps of random gradients, in blocks, are compared with the optimizer, with and
//         without weight decay and with a changing learning rate; values and slots agree to 1e-6
//         relative.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "optim/update_rule.hpp"
#include "torch/optimizers.hpp"

namespace syncopate::torch_backend {
namespace {

constexpr std::size_t count = 1003;
constexpr std::size_t cut = 518;
constexpr int steps = 100;

/// Returns values from 1 to 2, so that no parameter crosses 0, where a relative error means little.
std::vector<float> first_values(Random& random) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(1 + random.uniform()));
  }
  return values;
}

std::vector<float> random_gradient(Random& random) {
  std::vector<float> gradient;
  for (std::size_t i = 0; i < count; ++i) gradient.push_back(static_cast<float>(random.normal()));
  return gradient;
}

torch::Tensor tensor_of(const std::vector<float>& values) {
  return torch::tensor(values, torch::kFloat32);
}

std::vector<float> floats_of(const torch::Tensor& tensor) {
  const float* const begin = tensor.data_ptr<float>();
  return {begin, begin + tensor.numel()};
}

void set_rate(torch::optim::Optimizer& optimizer, double rate) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(rate);
}

void one_step(UpdateRule& rule, double rate, std::span<float> values,
              std::span<const float> gradient) {
  rule.begin_step(rate);
  rule.apply(cut, values.subspan(cut), gradient.subspan(cut), 1);
  rule.apply(0, values.first(cut), gradient.first(cut), 1);
}

/// Compares relative to the larger of the value and a tenth of the largest value, since means of
/// gradients cross 0.
void expect_close(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  float greatest = 0;
  for (const float value : expected) greatest = std::max(greatest, std::abs(value));
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], 1e-6 * std::max(std::abs(expected[i]), greatest / 10)) << i;
  }
}

void expect_same(const OptimizerState& found, const OptimizerState& expected) {
  EXPECT_EQ(found.counters, expected.counters);
  ASSERT_EQ(found.slots.size(), expected.slots.size());
  for (const auto& [name, slot] : expected.slots) {
    SCOPED_TRACE(name);
    expect_close(found.slots.at(name), slot);
  }
}

class EachRule : public testing::TestWithParam<std::string_view> {};

TEST_P(EachRule, DoesWhatLibtorchDoes) {
  const std::string name(GetParam());
  const auto same = value_named<Optimizer>(name);
  for (const double decay : {0.0, 0.05}) {
    const std::uint64_t seed = 40;
    SCOPED_TRACE(fmt::format("seed {} decay {}", seed, decay));
    Random random(seed);
    std::vector<float> values = first_values(random);
    torch::Tensor tensor = tensor_of(values).requires_grad_();
    const auto rule = make_update_rule({.name = name, .weight_decay = decay}, count);
    const auto optimizer = make_optimizer({.optimizer = same, .weight_decay = decay}, {tensor});
    for (int step = 0; step < steps; ++step) {
      const double rate = 0.002 / (1 + 0.01 * step);
      const std::vector<float> gradient = random_gradient(random);
      one_step(*rule, rate, values, gradient);
      set_rate(*optimizer, rate);
      tensor.mutable_grad() = tensor_of(gradient);
      optimizer->step();
    }
    expect_close(values, floats_of(tensor));
    expect_same(rule->state(), state_of(*optimizer));
  }
}

/// Uses other hyperparameters than libtorch's defaults.
TEST_P(EachRule, DoesWhatLibtorchDoesWithOtherHyperparameters) {
  const std::string name(GetParam());
  const auto same = value_named<Optimizer>(name);
  Random random(42);
  std::vector<float> values = first_values(random);
  torch::Tensor tensor = tensor_of(values).requires_grad_();
  const auto rule = make_update_rule(
      {.name = name, .momentum = 0.8, .beta1 = 0.7, .beta2 = 0.9, .alpha = 0.8, .epsilon = 0.01},
      count);
  const auto optimizer = make_optimizer({.optimizer = same,
                                         .momentum = 0.8,
                                         .beta1 = 0.7,
                                         .beta2 = 0.9,
                                         .alpha = 0.8,
                                         .epsilon = 0.01},
                                        {tensor});
  const auto usual = make_update_rule({.name = name, .momentum = 0.8}, count);
  std::vector<float> values_by_usual = values;
  for (int step = 0; step < steps; ++step) {
    const std::vector<float> gradient = random_gradient(random);
    one_step(*rule, 0.001, values, gradient);
    one_step(*usual, 0.001, values_by_usual, gradient);
    set_rate(*optimizer, 0.001);
    tensor.mutable_grad() = tensor_of(gradient);
    optimizer->step();
  }
  expect_close(values, floats_of(tensor));
  const bool adaptive = name.starts_with("ada") || name == "rmsprop";
  EXPECT_EQ(values != values_by_usual, adaptive);
}

TEST_P(EachRule, TakesOverFromLibtorch) {
  const std::string name(GetParam());
  const auto same = value_named<Optimizer>(name);
  Random random(41);
  const torch::Tensor tensor = tensor_of(first_values(random)).requires_grad_();
  const auto optimizer = make_optimizer({.optimizer = same, .learning_rate = 0.01}, {tensor});
  const auto rule = make_update_rule({.name = name}, count);
  rule->load(state_of(*optimizer));
  tensor.mutable_grad() = tensor_of(random_gradient(random));
  optimizer->step();
  rule->load(state_of(*optimizer));
  std::vector<float> values = floats_of(tensor);
  const std::vector<float> gradient = random_gradient(random);
  one_step(*rule, 0.01, values, gradient);
  tensor.mutable_grad() = tensor_of(gradient);
  optimizer->step();
  expect_close(values, floats_of(tensor));
}

INSTANTIATE_TEST_SUITE_P(Names, EachRule, testing::ValuesIn(update_rule_names()),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace syncopate::torch_backend
