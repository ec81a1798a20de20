// Goal:   the ring sums over all ranks and leaves the same bits everywhere, whatever the number of
//         ranks and the length, and its weighted mean is that of the union.
// Method: ranks 1 to 9 and lengths around every boundary, in the simulator, against sums of whole
//         numbers, which float32 holds exactly, and against float64 for others (seed printed).

#include "collective/ring.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/random.hpp"
#include "tests/support/simulated_group.hpp"

namespace syncopate {
namespace {

using Values = std::vector<float>;

class Ring : public testing::TestWithParam<std::uint32_t> {};

TEST_P(Ring, SumsExactlyForEveryLength) {
  const std::uint32_t size = GetParam();
  for (const std::size_t length : {0, 1, 2, 7, 8, 1000, 3 * 128 * 1024 + 5}) {
    const auto results = on_every_rank<Values>(size, [&](Group& group) {
      Values values(length);
      for (std::size_t i = 0; i < length; ++i) {
        values[i] = static_cast<float>(i % 1000 + group.rank().value);
      }
      ring_allreduce(group, values);
      return values;
    });
    const float ranks = static_cast<float>(size * (size - 1)) / 2;
    for (const Values& values : results) {
      ASSERT_EQ(values.size(), length);
      for (std::size_t i = 0; i < length; ++i) {
        ASSERT_EQ(values[i], static_cast<float>(size * (i % 1000)) + ranks)
            << i << " of " << length;
      }
    }
  }
}

TEST_P(Ring, LeavesTheSameBitsOnEveryRank) {
  constexpr std::uint64_t seed = 5;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const auto results = on_every_rank<Values>(GetParam(), [&](Group& group) {
    Random random = Random(seed).fork("values", group.rank().value);
    Values values(10'007);
    for (float& value : values) {
      value = static_cast<float>(random.normal());
    }
    ring_allreduce(group, values);
    return values;
  });
  for (const Values& values : results) {
    EXPECT_EQ(std::memcmp(values.data(), results[0].data(), values.size() * sizeof(float)), 0);
  }
}

TEST_P(Ring, WeightedMeanIsThatOfTheUnion) {
  constexpr std::uint64_t seed = 6;
  constexpr std::size_t length = 300;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const auto value_of = [](std::uint32_t rank, std::size_t i) {
    return static_cast<float>(Random(seed).fork("value", rank * length + i).normal());
  };
  const auto weight_of = [](std::uint32_t rank) { return rank * 3.0 + 1; };
  double total = 0;
  for (std::uint32_t rank = 0; rank < GetParam(); ++rank) {
    total += weight_of(rank);
  }
  const auto results = on_every_rank<Values>(GetParam(), [&](Group& group) {
    Values values(length);
    for (std::size_t i = 0; i < length; ++i) {
      values[i] = value_of(group.rank().value, i);
    }
    weighted_mean(group, values, weight_of(group.rank().value), total);
    return values;
  });
  for (std::size_t i = 0; i < length; ++i) {
    double expected = 0;
    for (std::uint32_t rank = 0; rank < GetParam(); ++rank) {
      expected += weight_of(rank) / total * double{value_of(rank, i)};
    }
    EXPECT_NEAR(results[0][i], expected, 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Ring, testing::Values(1, 2, 3, 4, 5, 8, 9));

TEST(WeightedMean, IgnoresTheValuesOfARankWithoutWeight) {
  const auto results = on_every_rank<Values>(3, [](Group& group) {
    const bool idle = group.rank() == Rank{1};
    Values values(4, idle ? std::numeric_limits<float>::quiet_NaN() : 2.0F);
    weighted_mean(group, values, idle ? 0 : 5, 10);
    return values;
  });
  for (const Values& values : results) {
    EXPECT_THAT(values, testing::Each(2.0F));
  }
}

}  // namespace
}  // namespace syncopate
