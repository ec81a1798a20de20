// Goal:   the rule moves the point of the workers' steps as the three sequences of Generalized
//         Primal Averaging do, and gives their average; its state continues it.
// Method: random changes (seed printed) in two blocks, compared with plain loops over z, x and y in
//         float64.

#include "scheme/primal_averaging.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "tests/support/relative_distance.hpp"

namespace syncopate {
namespace {

constexpr std::size_t values = 50;
constexpr std::size_t first_block = 16;
constexpr double rate = 0.7;

struct Sequences {
  std::vector<double> fast;
  std::vector<double> average;

  std::vector<double> between(double weight) const {
    std::vector<double> point(fast.size());
    for (std::size_t i = 0; i < fast.size(); ++i) {
      point[i] = weight * average[i] + (1 - weight) * fast[i];
    }
    return point;
  }
};

std::vector<float> rounded(const std::vector<double>& exact) {
  return {exact.begin(), exact.end()};
}

/// Takes a step on `params` with the change as the negative gradient.
void step(PrimalAveraging& rule, std::vector<float>& params, std::vector<float>& change,
          std::uint64_t round = 1) {
  rule.begin_round(round);
  rule.begin_step(rate);
  rule.apply(first_block, std::span(params).subspan(first_block),
             std::span(change).subspan(first_block), -1);
  rule.apply(0, std::span(params).first(first_block), std::span(change).first(first_block), -1);
}

class Primal : public testing::TestWithParam<PrimalAveraging::Options> {};

TEST_P(Primal, MovesAsTheThreeSequences) {
  constexpr std::uint64_t seed = 5;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  const auto [average, point] = GetParam();
  std::vector<float> params(values);
  for (float& value : params) value = static_cast<float>(random.normal());
  Sequences exact{.fast = {params.begin(), params.end()},
                  .average = {params.begin(), params.end()}};
  PrimalAveraging rule(GetParam(), values);
  for (std::uint64_t round = 1; round <= 40; ++round) {
    const double stays =
        average.value_or(1 - std::min(1.0, 9.0 / (static_cast<double>(round) + 8)));
    std::vector<float> change(values);
    for (std::size_t i = 0; i < values; ++i) {
      change[i] = static_cast<float>(0.1 * random.normal());
      exact.fast[i] += rate * change[i];
      exact.average[i] = stays * exact.average[i] + (1 - stays) * exact.fast[i];
    }
    step(rule, params, change, round);
    ASSERT_LT(relative_distance(params, rounded(exact.between(point))), 1e-5) << round;
    std::vector<float> tested = params;
    rule.average(tested);
    ASSERT_LT(relative_distance(tested, rounded(exact.average)), 1e-5) << round;
  }
}

TEST_P(Primal, ContinuesFromItsState) {
  PrimalAveraging rule(GetParam(), values);
  std::vector<float> params(values, 1);
  std::vector<float> change(values, 0.5F);
  step(rule, params, change);
  PrimalAveraging other(GetParam(), values);
  other.load(rule.state());
  std::vector<float> others = params;
  step(rule, params, change);
  step(other, others, change);
  EXPECT_EQ(params, others);
  OptimizerState shorter = rule.state();
  shorter.slots.begin()->second.pop_back();
  EXPECT_THROW(other.load(shorter), DataError);
}

INSTANTIATE_TEST_SUITE_P(Weights, Primal,
                         testing::Values(PrimalAveraging::Options{.average = 0.9, .point = 0.8},
                                         PrimalAveraging::Options{.average = 0.5, .point = 0},
                                         PrimalAveraging::Options{.average = {}, .point = 0.5},
                                         PrimalAveraging::Options{.average = 0.99, .point = 1}));

TEST(PrimalAveraging, WithoutAnAverageIsPlainSgd) {
  PrimalAveraging rule({.average = 0, .point = 0.8}, values);
  std::vector<float> params(values, 1);
  std::vector<float> change(values, 0.5F);
  step(rule, params, change);
  step(rule, params, change);
  EXPECT_THAT(params, testing::Each(testing::FloatEq(1 + 2 * 0.7F * 0.5F)));
}

}  // namespace
}  // namespace syncopate
