// Goal:   schemes of local steps train the same model as ssgd for options that make them
//         equivalent; an outer optimizer follows its formula; a run resumes exactly if the model is
//         its only state.
// Method: whole jobs of logistic regression in the simulator; their last checkpoints are compared,
//         to 1e-5 relative, since the order of additions differs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/checkpoint.hpp"
#include "scheme/scheme_options.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/relative_distance.hpp"
#include "tests/support/toy_job.hpp"

namespace syncopate::local_rounds_test {
namespace {

using testing::Each;
using testing::Eq;

TrainConfig config_of(const std::string& scheme, const std::string& name) {
  TrainConfig config = toy_config(fresh_folder("local-rounds-" + name));
  config.scheme = scheme;
  return config;
}

TrainConfig one_step_a_round(const std::string& scheme) {
  TrainConfig config = config_of(scheme, scheme);
  set(config, "local-steps", 1);
  return config;
}

std::vector<float> trained(const TrainConfig& config) {
  SimulatedJob job = toy_job(config);
  job.run();
  EXPECT_THAT(job.params(), Each(Eq(job.params()[0])));
  EXPECT_EQ(job.summary().at("samples"), config.epochs * 600);
  return last_checkpoint(config).values("weight");
}

std::vector<float> by_ssgd() {
  return trained(config_of("ssgd", "ssgd"));
}

/// Devices that take 1, 1 and 5 s for a mini-batch.
constexpr const char* unequal_speeds =
    "name = \"unequal\"\nbatch_samples = 16\n[[devices]]\nname = \"fast\"\ncount = 2\n"
    "seconds_per_batch = 1.0\njitter = 0.05\n[[devices]]\nname = \"slow\"\nseconds_per_batch = "
    "5.0\n";

TrainConfig esync_on(const char* cluster, const std::string& name) {
  TrainConfig config = config_of("esync", name);
  config.cluster = cluster_of(config.run_dir, cluster);
  return config;
}

TEST(LocalRounds, OfOneStepAreSsgd) {
  EXPECT_LE(relative_distance(trained(one_step_a_round("local-sgd")), by_ssgd()), 1e-5);
}

TEST(LocalRounds, OfOneStepAndAPlainOuterOptimizerAreSsgd) {
  TrainConfig config = one_step_a_round("diloco");
  set(config, "outer-optimizer", "sgd");
  set(config, "global-lr", 1);
  EXPECT_LE(relative_distance(trained(config), by_ssgd()), 1e-5);
}

TEST(LocalRounds, AreAddedByAServerAsAroundARing) {
  TrainConfig config = config_of("local-sgd", "by-ring");
  const std::vector<float> by_ring = trained(config);
  config.run_dir = fresh_folder("local-rounds-by-server");
  set(config, "aggregate", "server");
  EXPECT_LE(relative_distance(trained(config), by_ring), 1e-5);
}

TEST(LocalRounds, OfManyStepsDifferFromThoseOfOne) {
  TrainConfig config = config_of("local-sgd", "many");
  set(config, "local-steps", 8);
  EXPECT_GT(relative_distance(trained(config), by_ssgd()), 1e-3);
}

/// If workers take one plain step per round at the learning rate η, the outer gradient is η times
/// the mean gradient. So outer momentum at rate 1 equals momentum over steps at rate η.
TEST(LocalRounds, AnOuterMomentumIsThatOfSsgd) {
  TrainConfig outside = one_step_a_round("diloco");
  outside.optimizer = Optimizer::sgd;
  set(outside, "outer-optimizer", "momentum");
  set(outside, "global-lr", 1);
  TrainConfig inside = config_of("ssgd", "inside");
  inside.momentum = outside.scheme_options[option::outer_momentum];
  EXPECT_LE(relative_distance(trained(outside), trained(inside)), 1e-5);
}

TEST(LocalRounds, TheOuterOptimizerIsResumed) {
  TrainConfig whole = config_of("diloco", "whole");
  whole.optimizer = Optimizer::sgd;
  set(whole, "local-steps", 4);
  const std::vector<float> uninterrupted = trained(whole);
  TrainConfig cut = whole;
  cut.run_dir = fresh_folder("local-rounds-cut");
  cut.max_steps = 20;
  SimulatedJob first = toy_job(cut);
  first.run();
  cut.max_steps.reset();
  SimulatedJob second = toy_job(cut, /*resume=*/true);
  second.run();
  EXPECT_EQ(last_checkpoint(cut).values("weight"), uninterrupted);
}

TEST(LocalRounds, TheLastOneMayBeShort) {
  TrainConfig config = config_of("local-sgd", "short");
  set(config, "local-steps", 1000);  // more than there are
  SimulatedJob job = toy_job(config);
  job.run();
  EXPECT_EQ(job.summary().at("samples"), config.epochs * 600);
  EXPECT_EQ(job.summary().at("rounds"), 1);
}

TEST(BalancedSsgd, TakesTheSameSamplesInLessTime) {
  TrainConfig plain = esync_on(unequal_speeds, "unbalanced");
  plain.scheme = "ssgd";
  SimulatedJob waiting = toy_job(plain);
  waiting.run();
  TrainConfig config = esync_on(unequal_speeds, "balanced");
  config.scheme = "ssgd";
  set(config, "balance", true);
  SimulatedJob job = toy_job(config);
  job.run();
  EXPECT_THAT(job.params(), Each(Eq(job.params()[0])));
  EXPECT_EQ(job.summary().at("samples"), config.epochs * 600);
  EXPECT_EQ(job.summary().at("rounds"), config.epochs * 600 / 48);  // the global batch is constant
  // A batch of 48 takes 5 s in equal parts, and 1.36 s in parts that are proportional to the
  // speeds.
  EXPECT_LT(job.summary().at("training_seconds"),
            0.35 * waiting.summary().at("training_seconds").get<double>());
}

TEST(Esync, OfThePaperAtEqualSpeedsIsSsgd) {
  TrainConfig config = esync_on(equal_speeds, "paper");
  set(config, "pacing", "paper");
  set(config, "overlap", "off");
  EXPECT_LE(relative_distance(trained(config), by_ssgd()), 1e-5);
}

/// Expects the properties of every kind of pacing: replicas are equal at the end, every sample is
/// counted, and no device is idle.
void expect_busy_devices(const TrainConfig& config, double computing_time_ratio) {
  SimulatedJob job = toy_job(config);
  job.run();
  EXPECT_THAT(job.params(), Each(Eq(job.params()[0])));
  EXPECT_THAT(job.buffers(), Each(Eq(job.buffers()[0])));
  EXPECT_EQ(last_checkpoint(config).values("weight"), job.params()[0]);
  std::uint64_t samples = 0;
  for (const auto& worker : job.summary().at("workers")) {
    samples += worker.at("samples").get<std::uint64_t>();
    EXPECT_GE(worker.at("computing_time_ratio"), computing_time_ratio) << worker;
  }
  EXPECT_EQ(job.summary().at("samples"), samples);
  EXPECT_GE(job.summary().at("accuracy"), 0.75);
}

TEST(Esync, KeepsUnequalDevicesBusyWhileTheSumTravels) {
  TrainConfig config = esync_on(unequal_speeds, "overlap");
  config.epochs = 20;
  config.checkpoint_every = {Every::Unit::epochs, 20};  // workers wait at each checkpoint
  expect_busy_devices(config, 0.99);
}

/// An epoch takes 17 s and a round 1 s, so workers may wait for one of 17 rounds.
TEST(Esync, ACheckpointHoldsNobodyUpForLongerThanARound) {
  TrainConfig config = esync_on(unequal_speeds, "checkpoints");
  config.epochs = 20;
  expect_busy_devices(config, 1 - 1.0 / 17);
}

TEST(Esync, KeepsUnequalDevicesBusyByThePapersRule) {
  TrainConfig config = esync_on(unequal_speeds, "paper-unequal");
  config.epochs = 20;
  config.checkpoint_every = {Every::Unit::epochs, 20};
  set(config, "pacing", "paper");
  expect_busy_devices(config, 0.98);  // at the end the others wait for the slow device's last step
}

TEST(Esync, WithoutOverlapADeviceWaitsForLessThanAStepARound) {
  TrainConfig config = esync_on(unequal_speeds, "no-overlap");
  config.epochs = 20;
  set(config, "overlap", "off");
  set(config, "pacing", "paper");
  expect_busy_devices(config, 0.8);
}

/// A round ends with the last epoch, even if it was to be longer. A job exceeds its epochs only by
/// the steps that are under way at that moment and by those of the round that has begun by then.
TEST(Esync, EndsWithItsEpochs) {
  for (const char* const overlap : {"on", "off"}) {
    for (const double round_time : {0.5, 7.0, 1e6}) {
      SCOPED_TRACE(testing::Message() << "overlap " << overlap << ", rounds of " << round_time);
      TrainConfig config = esync_on(unequal_speeds, "epochs");
      config.epochs = 10;
      set(config, "overlap", overlap);
      set(config, "round-time", round_time);
      SimulatedJob job = toy_job(config);
      job.run();
      EXPECT_GE(job.summary().at("samples"), 6000);
      EXPECT_LE(job.summary().at("samples"), 6000 + 3 * 3 * 16);
    }
  }
}

TEST(Esync, TakesAnOuterOptimizer) {
  TrainConfig config = esync_on(unequal_speeds, "outer");
  config.epochs = 20;
  set(config, "outer-optimizer", "nesterov");
  set(config, "global-lr", 0.3);
  expect_busy_devices(config, 0.95);
}

/// Rounds are as long as a slow link asks for; two follow a request to end.
TEST(Esync, ARequestToEndDoesNotWaitForTheEndOfALongRound) {
  for (const bool interrupted : {false, true}) {
    SCOPED_TRACE(interrupted);
    TrainConfig config = esync_on(equal_speeds, "long-round");
    config.epochs = 100;
    set(config, "round-time", 1000);
    if (!interrupted) {
      config.max_time = 20;
    }
    SimulatedJob job = toy_job(config);
    if (interrupted) {
      job.simulation().at(TimePoint(std::chrono::seconds(20)), [&] { job.interrupt(); });
    }
    job.run();
    EXPECT_GE(job.summary().at("training_seconds"), 19);
    EXPECT_LE(job.summary().at("training_seconds"), 20 + 6) << "steps of a second";
    EXPECT_THAT(job.params(), Each(Eq(job.params()[0])));
  }
}

TEST(Esync, GoesOnFromItsCheckpoint) {
  TrainConfig config = esync_on(unequal_speeds, "resume");
  config.max_time = 60;
  SimulatedJob first = toy_job(config);
  first.run();
  const auto samples = first.summary().at("samples").get<std::uint64_t>();
  const auto rounds = first.summary().at("rounds").get<std::uint64_t>();
  config.max_time = 120;
  config.epochs = 50;
  SimulatedJob second = toy_job(config, /*resume=*/true);
  second.run();
  EXPECT_GT(second.summary().at("samples"), samples);
  EXPECT_GT(second.summary().at("rounds"), rounds);
  EXPECT_GE(second.summary().at("training_seconds"), 120);
  EXPECT_THAT(second.params(), Each(Eq(second.params()[0])));
}

}  // namespace
}  // namespace syncopate::local_rounds_test
