// Goal:   batch sizes follow speeds, their sum is the global batch, and no worker gets less than
//         the minimum; they follow a device whose speed changes, but not a single slow step.
// Method: cases worked out by hand; the invariants are checked for random weights (seed printed).

#include "scheme/balance.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/errors.hpp"
#include "base/random.hpp"

namespace syncopate {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using Sizes = std::vector<std::uint32_t>;

Sizes divided(std::uint32_t whole, const std::vector<double>& weights, std::uint32_t least) {
  return divide(whole, weights, least);
}

TEST(Divide, IsProportional) {
  EXPECT_THAT(divided(110, {4, 4, 2, 1}, 1), ElementsAre(40, 40, 20, 10));
}

TEST(Divide, GivesWhatIsLeftByLargestRemainders) {
  EXPECT_THAT(divided(10, {1, 1, 1}, 1), ElementsAre(4, 3, 3));
  EXPECT_THAT(divided(10, {3, 3, 1}, 1), ElementsAre(4, 4, 2));  // 4.29, 4.29, 1.43
}

TEST(Divide, LeavesNobodyWithLessThanTheLeast) {
  EXPECT_THAT(divided(100, {1, 1000, 1000}, 4), ElementsAre(4, 48, 48));
  EXPECT_THAT(divided(12, {1, 2, 1000}, 4), ElementsAre(4, 4, 4));
}

TEST(Divide, GivesNobodyMoreThanTheMost) {
  const auto divided = [](std::uint32_t whole, const std::vector<double>& weights,
                          const Sizes& most) { return divide(whole, weights, 2, most); };
  EXPECT_THAT(divided(64, {1, 1, 1, 1}, {64, 64, 64, 4}), ElementsAre(20, 20, 20, 4));
  EXPECT_THAT(divided(64, {8, 2, 1, 1}, {16, 20, 64, 64}), ElementsAre(16, 20, 14, 14));
  EXPECT_THAT(divided(30, {9, 1, 1}, {10, 10, 10}), ElementsAre(10, 10, 10));
}

TEST(Divide, KeepsItsInvariants) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<double> weights(1 + random.below(20));
    for (double& weight : weights) {
      weight = std::exp(4 * random.normal());
    }
    const auto least = static_cast<std::uint32_t>(random.below(5));
    const auto whole = static_cast<std::uint32_t>(least * weights.size() + random.below(1000) + 1);
    const Sizes sizes = divided(whole, weights, least);
    EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), 0U), whole);
    EXPECT_THAT(sizes, Each(Ge(least)));
    Sizes most;
    for (const std::uint32_t size : sizes) {
      most.push_back(std::max(least, size / 2 + static_cast<std::uint32_t>(random.below(whole))));
    }
    most[0] += whole;  // so that all fits
    const Sizes limited = divide(whole, weights, least, most);
    EXPECT_EQ(std::accumulate(limited.begin(), limited.end(), 0U), whole);
    EXPECT_THAT(limited, Each(Ge(least)));
    for (std::size_t i = 0; i < most.size(); ++i) {
      EXPECT_LE(limited[i], most[i]);
    }
  }
}

/// Reports one step of each device, given by its milliseconds per sample.
void step(Balance& balance, const std::vector<int>& milliseconds) {
  std::vector<Balance::Step> steps;
  for (std::size_t rank = 0; rank < milliseconds.size(); ++rank) {
    const std::uint32_t samples = balance.sizes()[rank];
    steps.push_back(
        {.samples = samples, .took = samples * std::chrono::milliseconds(milliseconds[rank])});
  }
  balance.observe(steps);
}

TEST(Balance, FollowsTheSpeedsOfTheDevices) {
  Balance balance({.batch_sizes = {64, 64, 64}});
  EXPECT_THAT(balance.sizes(), ElementsAre(64, 64, 64));
  step(balance, {1, 1, 4});
  EXPECT_THAT(balance.sizes(), ElementsAre(85, 85, 22));  // 192 by 4 : 4 : 1
}

TEST(Balance, FollowsADeviceThatSlowsDownAndNotAHiccup) {
  Balance balance({.batch_sizes = {50, 50}});
  for (int i = 0; i < 10; ++i) {
    step(balance, {1, 1});
  }
  step(balance, {1, 10});
  EXPECT_THAT(balance.sizes(), ElementsAre(50, 50));
  step(balance, {1, 10});
  EXPECT_THAT(balance.sizes(), ElementsAre(91, 9));
}

TEST(Balance, RefusesAGlobalBatchThatIsTooSmall) {
  EXPECT_THROW(Balance({.batch_sizes = {1, 1, 1}, .least = 2}), ConfigError);
}

}  // namespace
}  // namespace syncopate
