// Goal:   the longest of a device's earlier steps, scaled to the samples of the next one, is what this may take.
// Method: durations worked out by hand.

#include "train/step_forecast.hpp"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

using namespace std::chrono_literals;

TEST(StepForecast, KnowsNothingBeforeTheFirstStep) {
  StepForecast forecast;
  EXPECT_FALSE(forecast.known());
  forecast.took(0, 3s);
  EXPECT_EQ(forecast.longest(64), 0s);
}

TEST(StepForecast, ScalesTheLongestStepToTheSamples) {
  StepForecast forecast;
  forecast.took(4, 2s);
  forecast.took(64, 16s);
  forecast.took(64, 8s);
  EXPECT_EQ(forecast.longest(64), 32s);
  EXPECT_EQ(forecast.longest(2), 1s);
}

TEST(StepForecast, ForgetsWhatIsLongAgo) {
  StepForecast forecast;
  forecast.took(1, 100s);
  for (int i = 0; i < 63; ++i) {
    forecast.took(1, 1s);
  }
  EXPECT_EQ(forecast.longest(1), 100s);
  forecast.took(1, 1s);
  EXPECT_EQ(forecast.longest(1), 1s);
}

}  // namespace
}  // namespace syncopate
