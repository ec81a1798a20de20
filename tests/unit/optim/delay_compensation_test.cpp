// Goal:   delay compensation computes the formula of its paper, keeps its moving mean across blocks
//         and restarts, and does not change gradients at λ = 0.
// Method: fifty random gradients, in blocks of random lengths, are compared with a plain loop in
//         float64.

#include "optim/delay_compensation.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/errors.hpp"
#include "base/random.hpp"

namespace syncopate {
namespace {

constexpr std::size_t count = 517;

std::vector<float> random_values(Random& random, double size) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(size * random.normal()));
  }
  return values;
}

struct Delayed {
  explicit Delayed(Random& random)
      : gradient(random_values(random, 0.3)),
        values(random_values(random, 1)),
        backup(random_values(random, 1)) {}

  std::vector<float> gradient;
  std::vector<float> values;
  std::vector<float> backup;
};

/// Applies `compensation` in blocks and returns the gradient.
std::vector<float> compensated(DelayCompensation& compensation, const Delayed& delayed,
                               Random& cuts) {
  std::vector<float> gradient = delayed.gradient;
  for (std::size_t first = 0; first < count;) {
    const ValueRange block{first, std::min(count - first, std::size_t{1} + cuts.below(200))};
    compensation.apply(first, part(std::span(gradient), block),
                       part(std::span(delayed.values), block),
                       part(std::span(delayed.backup), block));
    first += block.count;
  }
  return gradient;
}

void expect_formula(const DelayCompensation::Options& options) {
  const std::uint64_t seed = 30;
  SCOPED_TRACE(fmt::format("seed {} adaptive {}", seed, options.adaptive));
  Random random(seed);
  Random cuts = random.fork("cuts");
  DelayCompensation compensation(options, count);
  std::vector<double> means(count);
  for (int step = 0; step < 50; ++step) {
    const Delayed delayed(random);
    const std::vector<float> found = compensated(compensation, delayed, cuts);
    for (std::size_t i = 0; i < count; ++i) {
      const double g = delayed.gradient[i];
      means[i] = 0.95 * means[i] + 0.05 * g * g;
      const double lambda =
          options.adaptive ? options.lambda / std::sqrt(means[i] + 1e-7) : options.lambda;
      const double moved = static_cast<double>(delayed.values[i]) - delayed.backup[i];
      const double added = lambda * g * g * moved;
      ASSERT_NEAR(found[i], g + added, 1e-6 * (std::abs(g) + std::abs(added))) << step << " " << i;
    }
  }
}

TEST(DelayCompensation, FollowsItsFormula) {
  expect_formula({.lambda = 0.5});
  expect_formula({.lambda = 2, .adaptive = true});
}

TEST(DelayCompensation, LeavesGradientsAloneAtLambda0) {
  Random random(31);
  Delayed delayed(random);
  delayed.gradient[3] = 3e38F;  // its square is infinite
  delayed.gradient[4] = -0.0F;
  DelayCompensation compensation({.lambda = 0}, count);
  const std::vector<float> found = compensated(compensation, delayed, random);
  EXPECT_EQ(found, delayed.gradient);
  EXPECT_TRUE(std::signbit(found[4]));
}

TEST(DelayCompensation, LeavesGradientsAloneWhereNothingMoved) {
  Random random(32);
  Delayed delayed(random);
  delayed.backup = delayed.values;
  for (const bool adaptive : {false, true}) {
    DelayCompensation compensation({.lambda = 2, .adaptive = adaptive}, count);
    EXPECT_EQ(compensated(compensation, delayed, random), delayed.gradient);
  }
}

TEST(DelayCompensation, GoesOnFromItsState) {
  Random random(33);
  const DelayCompensation::Options options{.lambda = 2, .adaptive = true};
  DelayCompensation compensation(options, count);
  compensated(compensation, Delayed(random), random);
  DelayCompensation resumed(options, count);
  EXPECT_EQ(compensation.state().slots.at("gradient_mean_square").size(), count);
  resumed.load(compensation.state());
  const Delayed next(random);
  EXPECT_EQ(compensated(resumed, next, random), compensated(compensation, next, random));
  EXPECT_EQ(resumed.state().slots, compensation.state().slots);
}

TEST(DelayCompensation, RefusesWhatMakesNoSense) {
  EXPECT_THROW(DelayCompensation({.lambda = -1}, 1), ConfigError);
  EXPECT_THROW(DelayCompensation({.lambda = std::nan("")}, 1), ConfigError);
  DelayCompensation constant({}, 1);
  EXPECT_TRUE(constant.state().slots.empty());
  EXPECT_THROW(constant.load({.slots = {{"gradient_mean_square", {1}}}, .counters = {}}),
               DataError);
}

}  // namespace
}  // namespace syncopate
