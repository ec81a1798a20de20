// Goal:   the estimate of a comparison's duration uses the known speeds, and only these.
// Method: clusters and runs with times worked out by hand.
#include "cli/compare/forecast.hpp"

#include <gtest/gtest.h>

#include "cli/compare/comparison_progress.hpp"

namespace syncopate::cli {
namespace {

/// Returns two devices that take 0.1 s and 0.4 s for 64 samples: 640 and 160 samples per second.
ClusterFile two_devices() {
  ClusterFile cluster{.name = "two", .devices = {}, .pauses = {}, .link = {}};
  cluster.devices.push_back(
      {.name = "fast", .batch_time = std::chrono::milliseconds(100), .batch_size = {}});
  cluster.devices.push_back(
      {.name = "slow", .batch_time = std::chrono::milliseconds(400), .batch_size = {}});
  return cluster;
}

TEST(WorkloadTest, TheSlowestSetsThePaceOfThoseInStepAlone) {
  const ClusterFile cluster = two_devices();
  TrainConfig config;
  config.epochs = 2;
  const Workload ssgd = workload_of(config, &cluster, 6400);
  EXPECT_DOUBLE_EQ(ssgd.samples, 12800);
  EXPECT_DOUBLE_EQ(ssgd.training_seconds, 40);  // 100 steps of 0.4 s
  config.scheme = "asgd";
  EXPECT_DOUBLE_EQ(workload_of(config, &cluster, 6400).training_seconds, 16);
  config.time_scale = 2;
  EXPECT_DOUBLE_EQ(workload_of(config, &cluster, 6400).training_seconds, 32);
}

TEST(WorkloadTest, LimitsOfStepsAndTimeMakeItLess) {
  const ClusterFile cluster = two_devices();
  TrainConfig config;
  config.max_steps = 10;
  EXPECT_DOUBLE_EQ(workload_of(config, &cluster, 6400).training_seconds, 4);
  config.max_time = 2;
  EXPECT_DOUBLE_EQ(workload_of(config, &cluster, 6400).samples, 640);
  EXPECT_DOUBLE_EQ(workload_of(config, nullptr, 6400).training_seconds, 2);
}

TEST(ForecastTest, RealRunsTakeTheirSecondsAndAFewMore) {
  const Workload run{.samples = 1000, .training_seconds = 100};
  Forecast forecast(2);
  forecast.expect(run, false);
  forecast.expect(run, false);
  EXPECT_NEAR(*forecast.remaining(), 200, 20);
  EXPECT_NEAR(*forecast.remaining({.training_seconds = 60}), 140, 20);
  forecast.ended(run, false, 103);
  EXPECT_NEAR(*forecast.remaining(), 100, 10);
}

TEST(ForecastTest, VirtualRunsAreKnownOnceOneHasEnded) {
  const Workload run{.samples = 1000, .training_seconds = 1e9};
  Forecast forecast(2);
  for (int i = 0; i < 5; ++i) {
    forecast.expect(run, true);
  }
  EXPECT_FALSE(forecast.remaining());
  forecast.ended(run, true, std::nullopt);  // a run that diverged is no measurement
  EXPECT_FALSE(forecast.remaining());
  forecast.ended(run, true, 8);
  EXPECT_DOUBLE_EQ(*forecast.remaining(), 3 * 8 / 2.0);
  EXPECT_DOUBLE_EQ(*forecast.remaining({.samples = 500}), 2.5 * 8 / 2.0);
}

TEST(AboutTest, SaysNoMoreThanItKnows) {
  EXPECT_EQ(about(38), "about 40 s");
  EXPECT_EQ(about(725), "about 12 min");
  EXPECT_EQ(about(9000), "about 2.5 h");
}

}  // namespace
}  // namespace syncopate::cli
