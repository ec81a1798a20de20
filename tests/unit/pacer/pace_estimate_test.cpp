// Goal:   an estimate follows its device, ignores a single slow step, and accepts a change that it
//         sees twice.
// Method: durations worked out by hand.

#include "pacer/pace_estimate.hpp"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

using namespace std::chrono_literals;

PaceEstimate after_steps_of(std::initializer_list<Duration> durations) {
  PaceEstimate estimate;
  for (const Duration duration : durations) estimate.observe(10, duration);
  return estimate;
}

TEST(PaceEstimate, KnowsNothingBeforeTheFirstStep) {
  PaceEstimate estimate;
  EXPECT_FALSE(estimate.known());
  EXPECT_EQ(estimate.step_time(64), 0s);
  estimate.observe(0, 3s);
  EXPECT_FALSE(estimate.known());
  estimate.observe(10, 2s);
  EXPECT_TRUE(estimate.known());
  EXPECT_DOUBLE_EQ(estimate.sample_seconds(), 0.2);
  EXPECT_EQ(estimate.step_time(64), 12800ms);
}

TEST(PaceEstimate, GivesTheNewestStepThreeTenths) {
  EXPECT_DOUBLE_EQ(after_steps_of({2s, 3s}).sample_seconds(), 0.7 * 0.2 + 0.3 * 0.3);
}

TEST(PaceEstimate, LeavesOneOutlierOut) {
  EXPECT_DOUBLE_EQ(after_steps_of({2s, 2s, 20s}).sample_seconds(), 0.2);
  EXPECT_DOUBLE_EQ(after_steps_of({2s, 2s, 20s, 2s, 20s, 2s}).sample_seconds(), 0.2);
  EXPECT_DOUBLE_EQ(after_steps_of({2s, 2s, 100ms}).sample_seconds(), 0.2);
}

TEST(PaceEstimate, BelievesTheSecondOutlierInARow) {
  EXPECT_DOUBLE_EQ(after_steps_of({2s, 2s, 20s, 22s}).sample_seconds(), 2.2);
  EXPECT_DOUBLE_EQ(after_steps_of({2s, 2s, 20s, 22s, 22s}).sample_seconds(), 2.2);
  EXPECT_DOUBLE_EQ(after_steps_of({20s, 2s, 2s}).sample_seconds(), 0.2);
}

TEST(PaceEstimate, WidensItsMarginWithTheSpread) {
  EXPECT_EQ(after_steps_of({2s, 2s, 2s}).margin(10), 1ms);
  // The mean distance is 10 % at weight 0.3; a deviation is 1.25 distances; the margin is two
  // deviations of a step of 2.06 s.
  const Duration margin = after_steps_of({2s, 2200ms}).margin(10);
  EXPECT_NEAR(to_seconds(margin), 2 * 1.25 * 0.03 * 2.06, 1e-9);
}

}  // namespace
}  // namespace syncopate
