// Goal:   a job knows from its configuration how small a step of it may be, and how fast an emulated device
//         is by itself.
// Method: a configuration for each way in which batches are cut.

#include "train/job_plan.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.hpp"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

TrainConfig config_of(const std::string& scheme) {
  TrainConfig config;
  config.scheme = scheme;
  config.workers = 2;
  return config;
}

/// Three quarters of the speed are one device's.
fs::path unequal_cluster() {
  fs::path path = fs::path(testing::TempDir()) / "syncopate-job-plan.toml";
  write_file(path,
             "name = \"two\"\n[[devices]]\nname = \"fast\"\nseconds_per_batch = 1.0\n"
             "[[devices]]\nname = \"slow\"\nseconds_per_batch = 3.0\n");
  return path;
}

TEST(JobPlan, KnowsTheFewestSamplesOfAStep) {
  EXPECT_EQ(JobPlan(config_of("ssgd")).least_step_samples(), 64U);
  EXPECT_FALSE(JobPlan(config_of("ssgd")).cuts_batches());

  TrainConfig nbssgd = config_of("nbssgd");
  nbssgd.mini_batches = 8;
  EXPECT_EQ(JobPlan(nbssgd).least_step_samples(), 8U);
  EXPECT_TRUE(JobPlan(nbssgd).cuts_batches());
  nbssgd.mini_batches = 1;
  EXPECT_EQ(JobPlan(nbssgd).least_step_samples(), 64U);
  EXPECT_FALSE(JobPlan(nbssgd).cuts_batches());

  TrainConfig esync = config_of("esync");
  EXPECT_EQ(JobPlan(esync).least_step_samples(), 4U) << "a sixteenth";
  EXPECT_TRUE(JobPlan(esync).cuts_batches());
  esync.pacing = "paper";
  EXPECT_EQ(JobPlan(esync).least_step_samples(), 64U);
  EXPECT_FALSE(JobPlan(esync).cuts_batches());

  TrainConfig balanced = config_of("ssgd");
  balanced.balance = true;
  balanced.cluster = unequal_cluster();
  EXPECT_EQ(JobPlan(balanced).least_step_samples(), 32U) << "a quarter of 128";
  EXPECT_TRUE(JobPlan(balanced).cuts_batches());
}

TEST(JobPlan, KnowsTheSpeedOfAnEmulatedDevice) {
  EXPECT_EQ(JobPlan(config_of("esync")).profiled_throughput(Rank{0}), 0) << "a real one";
  TrainConfig config = config_of("esync");
  config.cluster = unequal_cluster();
  config.time_scale = 2;
  EXPECT_DOUBLE_EQ(JobPlan(config).profiled_throughput(Rank{0}), 32);
  EXPECT_NEAR(JobPlan(config).profiled_throughput(Rank{1}), 64.0 / 6, 1e-6);
}

}  // namespace
}  // namespace syncopate
