// Goal:   random numbers are the same everywhere, forks are independent of earlier draws, and the
//         distributions have the moments that they claim.
// Method: the published first outputs of xoshiro256** over splitmix64, equality of streams, and
//         moments of many draws with bounds of six standard errors at a fixed seed.

#include "base/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

namespace syncopate {
namespace {

constexpr int draws = 100'000;

TEST(Random, SeedZeroGivesThePublishedSequence) {
  Random random(0);
  EXPECT_EQ(random.bits(), 0x99ec5f36cb75f2b4U);
  EXPECT_EQ(random.bits(), 0xbf6e1f784956452aU);
}

TEST(Random, AForkDoesNotDependOnEarlierDraws) {
  const Random fresh(7);
  Random used(7);
  used.bits();
  EXPECT_EQ(fresh.fork("jitter", 3).bits(), used.fork("jitter", 3).bits());
  EXPECT_NE(fresh.fork("jitter", 3).bits(), fresh.fork("jitter", 4).bits());
  EXPECT_NE(fresh.fork("jitter", 3).bits(), fresh.fork("shuffle", 3).bits());
}

TEST(Random, BelowIsUniform) {
  Random random(11);
  std::array<int, 7> counts{};
  for (int i = 0; i < draws; ++i) {
    ++counts.at(random.below(7));
  }
  const double expected = draws / 7.0;
  for (const int count : counts) {
    EXPECT_NEAR(count, expected, 6 * std::sqrt(expected));
  }
}

TEST(Random, NormalHasMeanZeroAndVarianceOne) {
  Random random(13);
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < draws; ++i) {
    const double value = random.normal();
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / draws, 0, 6 / std::sqrt(draws));
  EXPECT_NEAR(squares / draws, 1, 6 * std::sqrt(2.0 / draws));
}

TEST(Random, ShufflePermutes) {
  Random random(17);
  std::vector<int> values(100);
  std::iota(values.begin(), values.end(), 0);
  std::vector<int> shuffled = values;
  random.shuffle(std::span(shuffled));
  EXPECT_NE(shuffled, values);
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(shuffled, values);
}

}  // namespace
}  // namespace syncopate
