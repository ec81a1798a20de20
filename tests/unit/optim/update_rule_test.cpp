// Goal:   each rule computes its textbook formula, with the same bits on every instruction set and
//         for every division of a range into blocks; another rule object can continue from its
//         state.
// Method: a hundred steps of random gradients are compared with plain loops in float64, or with the
//         same rule in other blocks; blocks of random lengths in random order.

#include "optim/update_rule.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "optim/rule_state.hpp"

namespace syncopate {
namespace {

constexpr std::size_t count = 1003;
constexpr int steps = 100;
constexpr float scale = 0.37F;
constexpr double momentum = 0.8;

/// Returns values with magnitudes from 1 to 2, away from 0, where relative errors mean little.
std::vector<float> first_values(Random& random) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) {
    const double size = 1 + random.uniform();
    values.push_back(static_cast<float>(random.below(2) == 0 ? size : -size));
  }
  return values;
}

std::vector<float> random_gradient(Random& random) {
  std::vector<float> gradient;
  for (std::size_t i = 0; i < count; ++i) gradient.push_back(static_cast<float>(random.normal()));
  return gradient;
}

/// A learning rate that changes in each step, so that a test notices a rule that uses an old one.
double rate_at(int step) {
  return 0.002 / (1 + 0.01 * step);
}

/// Cuts 0 to `count` into blocks of random lengths, in random order.
std::vector<ValueRange> random_blocks(Random& random) {
  std::vector<ValueRange> blocks;
  for (std::size_t first = 0; first < count;) {
    const std::size_t length = std::min(count - first, std::size_t{1} + random.below(400));
    blocks.push_back({first, length});
    first += length;
  }
  random.shuffle(std::span(blocks));
  return blocks;
}

void one_step(UpdateRule& rule, double rate, const std::vector<ValueRange>& blocks,
              std::span<float> values, std::span<const float> gradient) {
  rule.begin_step(rate);
  for (const ValueRange& block : blocks) {
    rule.apply(block.first, part(values, block), part(gradient, block), scale);
  }
}

const std::vector<ValueRange> whole{{0, count}};

/// Takes `steps` steps with a new rule, each in one block; returns the values.
std::vector<float> trained(const RuleSpec& spec, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values = first_values(random);
  const auto rule = make_update_rule(spec, count);
  for (int step = 0; step < steps; ++step) {
    one_step(*rule, rate_at(step), whole, values, random_gradient(random));
  }
  return values;
}

/// The formulas of the rules, one parameter at a time, in float64.
struct Reference {
  RuleSpec spec;
  std::vector<double> values;
  std::vector<double> first = std::vector<double>(count);   ///< the first slot
  std::vector<double> second = std::vector<double>(count);  ///< the second slot
  double beta1 = 0.9;
  double beta2 = 0.999;
  double alpha = 0.99;
  std::optional<double> epsilon{};
  int step = 0;

  double sgd(double g) const { return g; }
  double heavy_ball(std::size_t i, double g) { return first[i] = momentum * first[i] + g; }
  double nesterov(std::size_t i, double g) { return g + momentum * heavy_ball(i, g); }
  double adagrad(std::size_t i, double g) {
    first[i] += g * g;
    return g / (std::sqrt(first[i]) + epsilon.value_or(1e-10));
  }
  double rmsprop(std::size_t i, double g) {
    first[i] = alpha * first[i] + (1 - alpha) * g * g;
    return g / (std::sqrt(first[i]) + epsilon.value_or(1e-8));
  }
  double adam(std::size_t i, double g) {
    first[i] = beta1 * first[i] + (1 - beta1) * g;
    second[i] = beta2 * second[i] + (1 - beta2) * g * g;
    const double mean = first[i] / (1 - std::pow(beta1, step));
    const double square = second[i] / (1 - std::pow(beta2, step));
    return mean / (std::sqrt(square) + epsilon.value_or(1e-8));
  }

  double direction(std::size_t i, double g) {
    if (spec.name == "momentum") return heavy_ball(i, g);
    if (spec.name == "nesterov") return nesterov(i, g);
    if (spec.name == "adagrad") return adagrad(i, g);
    if (spec.name == "rmsprop") return rmsprop(i, g);
    if (spec.name == "adam" || spec.name == "adamw") return adam(i, g);
    return sgd(g);
  }

  void apply(double rate, const std::vector<float>& gradient) {
    ++step;
    for (std::size_t i = 0; i < count; ++i) {
      double g = static_cast<double>(scale) * gradient[i];
      double kept = values[i];
      if (spec.name == "adamw") {
        kept *= 1 - rate * spec.weight_decay;
      } else {
        g += spec.weight_decay * values[i];
      }
      values[i] = kept - rate * direction(i, g);
    }
  }
};

/// Error of a hundred roundings, each of half a unit in the last place.
constexpr double tolerance = 100 * 0x1p-24;

/// Compares relative to the larger of the value and a tenth of the largest value, since means of
/// gradients cross 0.
void expect_close(const std::vector<float>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  double greatest = 0;
  for (const double value : expected) greatest = std::max(greatest, std::abs(value));
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double size = std::max(std::abs(expected[i]), greatest / 10);
    ASSERT_NEAR(found[i], expected[i], tolerance * size) << i;
  }
}

/// Returns the names of a rule's slots, beginning with the one that `Reference::first` holds.
std::vector<std::string> slots_of(const std::string& rule) {
  if (rule == "sgd") return {};
  if (rule == "adagrad") return {"sum"};
  if (rule == "rmsprop") return {"square_avg"};
  if (rule == "adam" || rule == "adamw") return {"exp_avg", "exp_avg_sq"};
  return {"momentum_buffer"};
}

class EachRule : public testing::TestWithParam<std::string_view> {
 protected:
  RuleSpec spec(double weight_decay) const {
    return {.name = std::string(GetParam()), .momentum = momentum, .weight_decay = weight_decay};
  }
};

TEST_P(EachRule, FollowsItsFormula) {
  for (const double decay : {0.0, 0.05}) {
    const std::uint64_t seed = 20;
    SCOPED_TRACE(fmt::format("seed {} decay {}", seed, decay));
    Random random(seed);
    std::vector<float> values = first_values(random);
    Reference reference{.spec = spec(decay), .values = {values.begin(), values.end()}};
    const auto rule = make_update_rule(spec(decay), count);
    for (int step = 0; step < steps; ++step) {
      const std::vector<float> gradient = random_gradient(random);
      one_step(*rule, rate_at(step), random_blocks(random), values, gradient);
      reference.apply(rate_at(step), gradient);
    }
    expect_close(values, reference.values);
    const OptimizerState state = rule->state();
    const std::vector<std::string> slots = slots_of(spec(decay).name);
    ASSERT_EQ(state.slots.size(), slots.size());
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      expect_close(state.slots.at(slots[slot]), slot == 0 ? reference.first : reference.second);
    }
    for (const auto& [name, value] : state.counters) EXPECT_EQ(value, steps) << name;
  }
}

TEST_P(EachRule, FollowsItsFormulaWithOtherHyperparameters) {
  RuleSpec other = spec(0.05);
  other.beta1 = 0.6;
  other.beta2 = 0.95;
  other.alpha = 0.8;
  other.epsilon = 0.03;
  const std::uint64_t seed = 26;
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Random random(seed);
  std::vector<float> values = first_values(random);
  Reference reference{.spec = other,
                      .values = {values.begin(), values.end()},
                      .beta1 = 0.6,
                      .beta2 = 0.95,
                      .alpha = 0.8,
                      .epsilon = 0.03};
  const auto rule = make_update_rule(other, count);
  for (int step = 0; step < steps; ++step) {
    const std::vector<float> gradient = random_gradient(random);
    one_step(*rule, rate_at(step), whole, values, gradient);
    reference.apply(rate_at(step), gradient);
  }
  expect_close(values, reference.values);
}

TEST_P(EachRule, DoesNotDependOnHowARangeIsCut) {
  const std::uint64_t seed = 21;
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Random random(seed);
  std::vector<float> values = first_values(random);
  const auto rule = make_update_rule(spec(0.05), count);
  Random cuts(seed + 1);
  for (int step = 0; step < steps; ++step) {
    one_step(*rule, rate_at(step), random_blocks(cuts), values, random_gradient(random));
  }
  EXPECT_EQ(values, trained(spec(0.05), seed));
}

/// Restricts the kernels to one instruction set until the end of the scope.
class Only {
 public:
  explicit Only(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  ~Only() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  Only(const Only&) = delete;
  Only& operator=(const Only&) = delete;
};

TEST_P(EachRule, HasTheSameBitsOnEveryInstructionSet) {
  const std::vector<float> expected = trained(spec(0.05), 22);
  std::int64_t targets = hwy::SupportedTargets();
  for (; targets != 0; targets &= targets - 1) {
    const std::int64_t target = targets & -targets;
    const Only one(target);
    EXPECT_EQ(trained(spec(0.05), 22), expected) << hwy::TargetName(target);
  }
}

TEST_P(EachRule, GoesOnFromItsState) {
  Random random(23);
  std::vector<float> values = first_values(random);
  const auto rule = make_update_rule(spec(0), count);
  one_step(*rule, 0.01, whole, values, random_gradient(random));
  std::vector<float> resumed_values = values;
  const auto resumed = make_update_rule(spec(0), count);
  resumed->load(rule->state());
  const std::vector<float> gradient = random_gradient(random);
  one_step(*rule, 0.01, whole, values, gradient);
  one_step(*resumed, 0.01, whole, resumed_values, gradient);
  EXPECT_EQ(values, resumed_values);
  EXPECT_EQ(rule->state().slots, resumed->state().slots);
  EXPECT_EQ(rule->state().counters, resumed->state().counters);
}

TEST_P(EachRule, BeginsAnewFromAnEmptyState) {
  Random random(24);
  const std::vector<float> start = first_values(random);
  const std::vector<float> gradient = random_gradient(random);
  const auto rule = make_update_rule(spec(0), count);
  std::vector<float> values = start;
  one_step(*rule, 0.01, whole, values, gradient);
  rule->load({});
  std::vector<float> again = start;
  one_step(*rule, 0.01, whole, again, gradient);
  EXPECT_EQ(again, values);
}

INSTANTIATE_TEST_SUITE_P(Names, EachRule, testing::ValuesIn(update_rule_names()),
                         [](const auto& name) { return std::string(name.param); });

float rounded(float value) {
  const volatile float kept = value;
  return kept;
}

/// Returns the value after steps along these gradients, from the value 1.
float value_after(const RuleSpec& spec, const std::vector<float>& gradients) {
  const auto rule = make_update_rule(spec, 1);
  std::vector<float> value{1};
  for (const float gradient : gradients) {
    rule->begin_step(0.1);
    rule->apply(0, value, std::vector<float>{gradient}, 1);
  }
  return value.front();
}

TEST_P(EachRule, SaysWhetherASteplessParameterMoves) {
  for (const double decay : {0.0, 0.05}) {
    RuleSpec each = spec(decay);
    const bool stands = value_after(each, {1, 0, 0, 1}) == value_after(each, {1, 1});
    EXPECT_EQ(moves_without_gradient(each), !stands) << each.name << " with decay " << decay;
  }
}

TEST(UpdateRule, PlainSgdIsAPlainLoop) {
  const std::uint64_t seed = 25;
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Random random(seed);
  std::vector<float> values = first_values(random);
  std::vector<float> expected = values;
  const std::vector<float> gradient = random_gradient(random);
  const auto rule = make_update_rule({.name = "sgd"}, count);
  rule->begin_step(0.3);
  rule->apply(0, values, gradient, 1);
  for (std::size_t i = 0; i < count; ++i) expected[i] -= rounded(0.3F * gradient[i]);
  EXPECT_EQ(values, expected);
}

TEST(UpdateRule, CountsWhereTorchCounts) {
  for (const std::string_view name : update_rule_names()) {
    const auto rule = make_update_rule({.name = std::string(name)}, 1);
    rule->begin_step(0.1);
    const bool counts = name == "adam" || name == "adamw" || name == "rmsprop" || name == "adagrad";
    const std::map<std::string, std::int64_t> one_step{{"step", 1}};
    EXPECT_EQ(rule->state().counters, counts ? one_step : decltype(one_step){}) << name;
  }
}

TEST(UpdateRule, RefusesTheStateOfAnotherAndKeepsItsOwn) {
  const auto rule = make_update_rule({.name = "adam"}, 3);
  std::vector<float> values{1, 2, 3};
  rule->begin_step(0.1);
  rule->apply(0, values, values, 1);
  const OptimizerState before = rule->state();
  OptimizerState longer = before;
  longer.slots["exp_avg_sq"].push_back(0);
  OptimizerState negative = before;
  negative.counters["step"] = -1;
  OptimizerState uncounted = before;
  uncounted.counters.clear();
  for (const OptimizerState& state :
       {longer, negative, uncounted,
        OptimizerState{.slots = {{"momentum_buffer", {1, 2, 3}}}, .counters = {}}}) {
    EXPECT_THROW(rule->load(state), DataError);
    EXPECT_EQ(rule->state().slots, before.slots);
    EXPECT_EQ(rule->state().counters, before.counters);
  }
  try {
    rule->load(longer);
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(),
                 "state of adam does not fit: expected state like exp_avg of 3 values, exp_avg_sq "
                 "of 3 values, step 1; found exp_avg of 3 values, exp_avg_sq of 4 values, step 1; "
                 "use the network and the optimizer that it was saved with");
  }
}

std::string refusal(const RuleSpec& spec) {
  try {
    make_update_rule(spec, 1);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "none";
}

TEST(UpdateRule, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refusal({.name = "sdg"}),
            "unknown server optimizer \"sdg\": expected one of sgd, momentum, nesterov, adagrad, "
            "rmsprop, adam, adamw");
  EXPECT_EQ(refusal({.name = "momentum", .momentum = 1}),
            "momentum 1 of server optimizer momentum: expected a number from 0 to below 1");
  EXPECT_EQ(refusal({.name = "adam", .weight_decay = std::nan("")}),
            "weight decay nan of server optimizer adam: expected a number from 0 to below inf");
}

}  // namespace
}  // namespace syncopate
