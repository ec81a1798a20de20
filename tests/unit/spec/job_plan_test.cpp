// Goal:   a job plan computes from the configuration the smallest step, the speed of emulated
//         devices, each worker's share of the data, and the settings of server and pacer.
// Method: one configuration for each way to divide batches; closed values.

#include "spec/job_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/toy_job.hpp"

namespace syncopate {
namespace {

using testing::ElementsAre;
namespace fs = std::filesystem;

TrainConfig config_of(const std::string& scheme) {
  TrainConfig config;
  config.scheme = scheme;
  config.workers = 2;
  return config;
}

/// Writes a cluster file in which one device has three quarters of the total speed.
fs::path unequal_cluster() {
  fs::path path = fs::path(testing::TempDir()) / "syncopate-job-plan.toml";
  write_file(path,
             "name = \"two\"\n[[devices]]\nname = \"fast\"\nseconds_per_batch = 1.0\n"
             "[[devices]]\nname = \"slow\"\nseconds_per_batch = 3.0\n");
  return path;
}

TEST(JobPlan, DividesDataByTheSpeedsThatDevicesGoOnAt) {
  const ImageSet& train = small_dataset().train;
  const auto part_of_the_slow_one = [&](const std::string& scheme) {
    TrainConfig config = config_of(scheme);
    config.cluster = unequal_cluster();
    return JobPlan(config).data_share(train, Rank{1});
  };
  for (const std::string scheme : {"esync", "nbssgd"}) {
    EXPECT_EQ(part_of_the_slow_one(scheme), 0.25) << scheme;
  }
  for (const std::string scheme : {"ssgd", "local-sgd", "asgd"}) {
    EXPECT_EQ(part_of_the_slow_one(scheme), 0.5) << scheme;
  }
  EXPECT_EQ(JobPlan(config_of("esync")).data_share(train, Rank{1}), 0.5) << "speeds are unknown";
  TrainConfig small = config_of("esync");
  small.cluster = unequal_cluster();
  small.batch_size = 240;
  EXPECT_EQ(JobPlan(small).data_share(train, Rank{1}), 240 / 600.0) << "a batch at least";
}

TEST(JobPlan, KnowsTheSpeedOfADeviceInStepsOfItsBatch) {
  TrainConfig config = config_of("ssgd");
  config.workers = 1;
  config.cluster = fs::path(testing::TempDir()) / "syncopate-job-plan-overhead.toml";
  write_file(config.cluster,
             "name = \"one\"\n[[devices]]\nbatch_samples = 32\nseconds_per_batch = 0.4\n"
             "seconds_per_step = 0.08\n");
  config.batch_size = 64;
  EXPECT_NEAR(JobPlan(config).profiled_throughput(Rank{0}), 64 / 0.72, 1e-6);
  config.time_scale = 2;
  EXPECT_NEAR(JobPlan(config).profiled_throughput(Rank{0}), 64 / 1.44, 1e-6);
}

TEST(JobPlan, DividesAGlobalBatchUnlessThePacerDoes) {
  const auto sizes = [](const std::string& scheme, std::uint32_t global_batch, bool emulated) {
    TrainConfig config = config_of(scheme);
    config.batch_size.reset();
    config.global_batch = global_batch;
    if (emulated) {
      config.cluster = unequal_cluster();
    }
    return JobPlan(config).batch_sizes();
  };
  EXPECT_THAT(sizes("ssgd", 64, true), ElementsAre(48, 16)) << "3 : 1";
  EXPECT_THAT(sizes("ssgd", 65, false), ElementsAre(33, 32)) << "speeds are unknown";
  EXPECT_THAT(sizes("ssgd", 4, true), ElementsAre(2, 2)) << "two samples at least";
  EXPECT_THAT(sizes("esync", 64, true), ElementsAre(64, 64)) << "a mini-batch of each";
}

TEST(JobPlan, TakesTheBatchOfEachWorkerFromAList) {
  TrainConfig config = config_of("ssgd");
  set_field_from_text(*find_field("batch-size"), config, "24, 8");
  EXPECT_EQ(to_text(get_field(*find_field("batch-size"), config)), "24,8");
  EXPECT_THAT(JobPlan(config).batch_sizes(), ElementsAre(24, 8));
  EXPECT_EQ(JobPlan(config).data_share(small_dataset().train, Rank{0}), 0.75);
  set_field_from_text(*find_field("batch-size"), config, "24");
  EXPECT_THAT(JobPlan(config).batch_sizes(), ElementsAre(24, 24));
}

TEST(JobPlan, GivesBatchNormEnoughSamplesOfTheUsualGlobalBatch) {
  const auto least = [](const std::string& network, std::optional<std::uint32_t> global_batch) {
    TrainConfig config = config_of("esync");
    config.network = NetworkChoice::of(network);
    config.global_batch = global_batch;
    return JobPlan(resolve_config(config, {})).least_step_samples();
  };
  EXPECT_EQ(least("resnet18-v1", {}), 16U);
  EXPECT_EQ(least("lenet5", {}), 2U);
  EXPECT_EQ(least("resnet18-v1", 32), 2U) << "a batch that is asked for is kept";
}

TEST(JobPlan, GivesNoWorkerMoreThanTheMostOfABatch) {
  const auto sizes = [](const std::string& scheme, const std::string& most) {
    TrainConfig config = config_of(scheme);
    config.global_batch = 64;
    config.cluster = unequal_cluster();
    set_field_from_text(*find_field("max-batch-size"), config, most);
    check_config(config);
    return JobPlan(config).batch_sizes();
  };
  EXPECT_THAT(sizes("ssgd", "40"), ElementsAre(40, 24)) << "3 : 1";
  EXPECT_THAT(sizes("ssgd", "64,10"), ElementsAre(54, 10));
  EXPECT_THAT(sizes("esync", "64,10"), ElementsAre(64, 10));
  EXPECT_EQ(refusal([&] { sizes("ssgd", "40,20"); }),
            "global batch 64 does not fit into the max batch size 40,20 of 2 workers, 60 in all; "
            "lower one or raise the other");
  TrainConfig config = config_of("ssgd");
  set_field_from_text(*find_field("max-batch-size"), config, "48");
  EXPECT_THAT(JobPlan(config).batch_sizes(), ElementsAre(48, 48)) << "less than the usual 64";
}

TEST(JobPlan, DividesDataByTheSharesThatAreAskedFor) {
  const ImageSet& train = small_dataset().train;
  for (const std::string scheme : {"ssgd", "esync"}) {
    TrainConfig config = config_of(scheme);
    config.cluster = unequal_cluster();
    config.shares = {1, 4};
    EXPECT_EQ(JobPlan(config).data_share(train, Rank{1}), 0.8) << scheme;
    config.shares = {1e6, 1e-6};
    EXPECT_EQ(refusal([&] { JobPlan(config).feed(train, Rank{0}); }),
              "shares 1000000,1e-06 leave worker 1 none of 600 training samples; give it a larger "
              "share");
  }
}

TEST(JobPlan, TakesNoMemberForDeadBeforeTheLimitOfAWait) {
  struct Case {
    double wait_limit, silence;
  };
  for (const Case& each : {Case{60, 60}, Case{600, 600}, Case{2, 10}}) {
    TrainConfig config = config_of("asgd");
    config.wait_limit = each.wait_limit;
    EXPECT_EQ(JobPlan(config).membership().silence.floor, from_seconds(each.silence));
  }
}

TEST(JobPlan, KnowsTheFewestSamplesOfAStep) {
  EXPECT_EQ(JobPlan(config_of("ssgd")).least_step_samples(), 64U);
  EXPECT_FALSE(JobPlan(config_of("ssgd")).cuts_batches());

  TrainConfig nbssgd = config_of("nbssgd");
  set(nbssgd, "mini-batches", 8);
  EXPECT_EQ(JobPlan(nbssgd).least_step_samples(), 8U);
  EXPECT_TRUE(JobPlan(nbssgd).cuts_batches());
  set(nbssgd, "mini-batches", 1);
  EXPECT_EQ(JobPlan(nbssgd).least_step_samples(), 64U);
  EXPECT_FALSE(JobPlan(nbssgd).cuts_batches());

  TrainConfig esync = config_of("esync");
  EXPECT_EQ(JobPlan(esync).least_step_samples(), 4U) << "a sixteenth";
  EXPECT_TRUE(JobPlan(esync).cuts_batches());
  set(esync, "pacing", "paper");
  EXPECT_EQ(JobPlan(esync).least_step_samples(), 64U);
  EXPECT_FALSE(JobPlan(esync).cuts_batches());

  TrainConfig balanced = config_of("ssgd");
  set(balanced, "balance", true);
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

TEST(JobPlan, GivesAServerTheOptionsOfItsOptimizer) {
  TrainConfig config = config_of("asgd");
  config.optimizer = Optimizer::adam;
  set(config, "server-optimizer", "rmsprop");
  config.momentum = 0.7;
  config.weight_decay = 0.01;
  config.beta1 = 0.6;
  config.beta2 = 0.95;
  config.alpha = 0.8;
  config.epsilon = 0.03;
  const RuleSpec rule = JobPlan(config).server_rule();
  EXPECT_EQ(rule.name, "adam");
  EXPECT_EQ(rule.momentum, 0.7);
  EXPECT_EQ(rule.weight_decay, 0.01);
  EXPECT_EQ(rule.beta1, 0.6);
  EXPECT_EQ(rule.beta2, 0.95);
  EXPECT_EQ(rule.alpha, 0.8);
  EXPECT_EQ(rule.epsilon, 0.03);
  config.scheme = "downpour";
  EXPECT_EQ(JobPlan(config).server_rule().name, "rmsprop");
}

TEST(JobPlan, GivesThePacerTheMarginThatIsAskedFor) {
  TrainConfig config = config_of("esync");
  set(config, "pacing", "paper");
  EXPECT_FALSE(JobPlan(config).pacing(0)->margin);
  set(config, "pacing-margin", 0.5);
  EXPECT_EQ(JobPlan(config).pacing(0)->margin, std::chrono::milliseconds(500));
}

/// The classes have 6, 2 and 2 samples; the second worker has two of the classes.
TEST(JobPlan, KnowsAWorkersShareOfTheData) {
  const ImageSet train{.shape = {}, .pixels = {}, .labels = {0, 0, 0, 0, 0, 0, 1, 1, 2, 2}};
  TrainConfig config = config_of("esync");
  config.split = Split::parse("class");
  EXPECT_DOUBLE_EQ(JobPlan(config).data_share(train, Rank{0}), 0.6);
  EXPECT_DOUBLE_EQ(JobPlan(config).data_share(train, Rank{1}), 0.4);
  config.split = Split::parse("iid");
  EXPECT_DOUBLE_EQ(JobPlan(config).data_share(train, Rank{0}), 0.5);
}

}  // namespace
}  // namespace syncopate
