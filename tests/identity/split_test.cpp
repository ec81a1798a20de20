// Goal:   on data that differ between workers, rounds of local steps learn the data of every
//         worker, including the slow ones, nearly as well as ssgd after the same number of samples;
//         on equal data they train the same model as ssgd.
// Method: whole jobs of logistic regression in the simulator on data split by class or by a
//         Dirichlet draw, five seeds, are compared with ssgd on the same cluster; equal models
//         agree to 1e-5 relative.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.hpp"
#include "checkpoint/checkpoint.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/relative_distance.hpp"
#include "tests/support/toy_job.hpp"

namespace syncopate::split_test {
namespace {

namespace fs = std::filesystem;
using testing::Each;
using testing::Eq;

/// Devices that take 1, 1 and 40 s for a mini-batch.
constexpr const char* unequal_speeds =
    "name = \"unequal\"\nbatch_samples = 16\n[[devices]]\nname = \"fast\"\ncount = 2\n"
    "seconds_per_batch = 1.0\njitter = 0.05\n[[devices]]\nname = \"slow\"\nseconds_per_batch = "
    "40.0\n";

/// Devices that take 1, 1 and 3 s.
constexpr const char* mixed_speeds =
    "name = \"mixed\"\nbatch_samples = 16\n[[devices]]\nname = \"fast\"\ncount = 2\n"
    "seconds_per_batch = 1.0\njitter = 0.05\n[[devices]]\nname = \"slow\"\nseconds_per_batch = "
    "3.0\n";

TrainConfig config_of(const std::string& scheme, const char* cluster, std::uint64_t seed = 1) {
  TrainConfig config = toy_config(fresh_folder("split-" + scheme));
  config.scheme = scheme;
  config.split = Split::parse("class");
  config.seed = seed;
  config.cluster = cluster_of(config.run_dir, cluster);
  return config;
}

double accuracy_of(const TrainConfig& config) {
  SimulatedJob job = toy_job(config);
  job.run();
  EXPECT_THAT(job.params(), Each(Eq(job.params()[0])));
  return job.summary().at("accuracy").get<double>();
}

std::vector<float> trained(const TrainConfig& config) {
  SimulatedJob job = toy_job(config);
  job.run();
  return last_checkpoint(config).values("weight");
}

TEST(Split, ByClassEsyncIsAsGoodAsSsgdAfterEqualSamples) {
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    TrainConfig ssgd = config_of("ssgd", mixed_speeds, seed);
    ssgd.epochs = 12;
    set(ssgd, "schedule", "cosine");
    TrainConfig esync = config_of("esync", mixed_speeds, seed);
    esync.epochs = ssgd.epochs;
    esync.schedule = ssgd.schedule;
    sum += accuracy_of(esync) - accuracy_of(ssgd);
  }
  EXPECT_GE(sum / 5, -0.04);  // of 200 test samples
}

/// Compares the defaults for split data with settings for shuffled data: weights by samples, local
/// momentum, overlap.
TEST(Split, ByClassTheDefaultsLearnMoreOfWhatASlowWorkerHolds) {
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    TrainConfig config = config_of("esync", unequal_speeds, seed);
    config.epochs = 40;
    set(config, "schedule", "cosine");
    sum += accuracy_of(config);
    config.run_dir = fresh_folder("split-as-iid");
    set(config, "weights", "samples");
    set(config, "overlap", "on");
    set(config, "drift-correction", "none");
    set(config, "local-rate", "step");
    set(config, "outer-optimizer", "sgd");
    sum -= accuracy_of(config);
  }
  EXPECT_GE(sum / 3, 0.03);
}

/// Each default has an effect: without it the job trains another model. The paper's pacing has the
/// fast devices take three steps in a round.
TEST(Split, ByClassEachDefaultIsTaken) {
  TrainConfig config = config_of("esync", mixed_speeds);
  set(config, "pacing", "paper");
  const std::vector<float> by_default = trained(config);
  const fs::path path = *latest_checkpoint(config.run_dir / "checkpoints");
  EXPECT_TRUE(
      Checkpoint(read_file(path), path.string(), "toy").states_of(Rank{0}).contains("control"));
  const auto differs_by = [&](const char* option, const char* value) {
    TrainConfig other = config;
    other.run_dir = fresh_folder("split-without-a-default");
    set(other, option, value);
    return relative_distance(trained(other), by_default);
  };
  EXPECT_GT(differs_by("weights", "samples"), 0.01);
  EXPECT_GT(differs_by("drift-correction", "none"), 0.01);
  EXPECT_GT(differs_by("local-rate", "step"), 0.01);
  EXPECT_GT(differs_by("warm-up", "0"), 0.01);
  EXPECT_EQ(differs_by("weights", "data"), 0);
}

TEST(Split, ByDirichletTrains) {
  TrainConfig config = config_of("esync", unequal_speeds);
  config.split = Split::parse("dirichlet:0.3");
  config.epochs = 20;
  EXPECT_GE(accuracy_of(config), 0.7);
}

TEST(Split, EsyncOfOneStepARoundIsSsgd) {
  TrainConfig esync = config_of("esync", equal_speeds);
  set(esync, "pacing", "paper");
  esync.warm_up = 0;  // ssgd has none by default
  EXPECT_LE(relative_distance(trained(esync), trained(config_of("ssgd", equal_speeds))), 1e-5);
}

/// With equal parts, steps and batches every weight is a third.
TEST(Split, WeightsByDataAreThoseBySamplesWhereNothingDiffers) {
  TrainConfig config = config_of("local-sgd", equal_speeds);
  config.split = Split::parse("iid");
  config.batch_size = 20;
  const std::vector<float> by_samples = trained(config);
  config.run_dir = fresh_folder("split-weights-data");
  set(config, "weights", "data");
  EXPECT_LE(relative_distance(trained(config), by_samples), 1e-5);
}

/// Parts of 240, 180 and 180 samples: no worker uses up its part before the others.
TEST(Split, EveryStepOfSsgdHasAWholeBatchOfEveryWorker) {
  SimulatedJob job = toy_job(config_of("ssgd", equal_speeds));
  job.run();
  EXPECT_EQ(job.summary().at("rounds"), 4 * 13);  // 600 samples in steps of 48 at most
  EXPECT_EQ(job.summary().at("samples"), 4 * 600);
  for (const auto& worker : job.summary().at("workers")) {
    EXPECT_GE(worker.at("samples"), 4 * 600 / 3 - 24) << worker;
  }
}

}  // namespace
}  // namespace syncopate::split_test
