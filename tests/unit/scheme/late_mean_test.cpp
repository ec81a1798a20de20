// Goal:   running statistics that receive the mean late stay within the range of values that
//         workers have had.
// Method: fixed values; running means of random samples on workers with unequal steps, five seeds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.hpp"
#include "scheme/buffer_mean.hpp"

namespace syncopate {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::Le;

std::vector<float> taken(std::vector<float> buffers, const std::vector<float>& contributed,
                         const std::vector<float>& mean) {
  take_late_mean(buffers, contributed, mean);
  return buffers;
}

TEST(LateMeanTest, IsTheMeanWhereNothingHasChanged) {
  EXPECT_THAT(taken({0.1F, -3e30F}, {0.1F, -3e30F}, {0.3F, 1e-30F}), ElementsAre(0.3F, 1e-30F));
}

TEST(LateMeanTest, KeepsChangesUpToTheMeanAndThePresent) {
  // A rise by a quarter since then; a change that would go beyond the mean; one that would go
  // beyond the value itself.
  EXPECT_THAT(taken({1.25F, 3, 3}, {1, 1, 2}, {0.5F, 2, 4}), ElementsAre(0.75F, 3, 4));
  EXPECT_THAT(taken({0.1F}, {1}, {0.2F}), ElementsAre(0.1F));  // an added change would give -0.7
}

TEST(LateMeanTest, HidesNothingThatIsNotFinite) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {nan, std::numeric_limits<float>::infinity()}) {
    EXPECT_FALSE(std::isfinite(taken({bad}, {1}, {2})[0]));
    EXPECT_FALSE(std::isfinite(taken({1}, {1}, {bad})[0]));
  }
}

TEST(LateMeanTest, KeepsTheInfiniteValuesOfAMask) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  EXPECT_THAT(taken({-inf, 0, inf}, {-inf, 0, inf}, {-inf, 0, inf}), ElementsAre(-inf, 0, inf));
}

std::vector<float> mean_of(const std::vector<std::vector<float>>& workers) {
  std::vector<float> mean(workers.front().size());
  for (std::size_t i = 0; i < mean.size(); ++i) {
    for (const auto& worker : workers) mean[i] += worker[i];
    mean[i] /= static_cast<float>(workers.size());
  }
  return mean;
}

/// Each worker takes a random number of steps between its contribution and the mean.
TEST(LateMeanTest, KeepsRunningMeansInTheRangeOfTheirSamples) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto sample = [&] { return 0.2F + 0.2F * static_cast<float>(random.uniform()); };
    std::vector<std::vector<float>> workers(3, std::vector<float>(4, 1.0F));  // initial variance
    const auto train = [&](std::vector<float>& worker, std::uint64_t steps) {
      for (std::uint64_t step = 0; step < steps; ++step) {
        for (float& value : worker) value += 0.1F * (sample() - value);
      }
    };
    for (int round = 0; round < 100; ++round) {
      const auto contributed = workers;
      const std::vector<float> mean = mean_of(contributed);
      for (std::size_t rank = 0; rank < workers.size(); ++rank) {
        train(workers[rank], random.below(31));
        take_late_mean(workers[rank], contributed[rank], mean);
        EXPECT_THAT(workers[rank], Each(AllOf(Ge(0.2F), Le(1.0F))));
      }
    }
    for (const auto& worker : workers) {
      EXPECT_THAT(worker, Each(AllOf(Ge(0.2F), Le(0.4F))));
    }
  }
}

}  // namespace
}  // namespace syncopate
