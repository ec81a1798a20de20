// Goal:   nbssgd trains the same model as ssgd, asgd or sequential SGD for options that make them
//         equivalent, including the learning rate; a server aggregates as an allreduce does; on
//         unequal devices no sample is lost, replicas stay equal, and the staleness matches the
//         commit option.
// Method: whole jobs of logistic regression in the simulator; their last checkpoints are compared,
//         to 1e-5 relative, since the order of additions differs.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/checkpoint.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/relative_distance.hpp"
#include "tests/support/toy_job.hpp"

namespace syncopate::nbssgd_test {
namespace {

using testing::Each;
using testing::Eq;

/// Devices that take 0.4, 0.4 and 3.2 s for a batch.
constexpr const char* unequal =
    "name = \"unequal\"\nbatch_samples = 16\n[[devices]]\nname = \"fast\"\ncount = 2\n"
    "seconds_per_batch = 0.4\njitter = 0.05\n[[devices]]\nname = \"slow\"\nseconds_per_batch = "
    "3.2\n";

/// Makes a job whose batch size divides the samples of an epoch, so that no batch is partial.
TrainConfig config_of(const std::string& scheme, const std::string& name) {
  TrainConfig config = toy_config(fresh_folder("nbssgd-" + name));
  config.scheme = scheme;
  config.batch_size = 20;
  set(config, "commit", "barrier");
  return config;
}

TrainConfig on_unequal_devices(const std::string& commit, std::uint32_t mini_batches = 4) {
  TrainConfig config = config_of("nbssgd", commit + "-unequal");
  config.batch_size = 16;
  config.cluster = cluster_of(config.run_dir, unequal);
  set(config, "commit", commit);
  set(config, "mini-batches", mini_batches);
  return config;
}

/// Runs a job. Returns the parameters of its last checkpoint, followed by the buffers.
std::vector<float> trained(const TrainConfig& config) {
  SimulatedJob job = toy_job(config);
  job.run();
  std::vector<float> model = last_checkpoint(config).values("weight");
  const std::vector<float> buffers = last_checkpoint(config).values("feature_mean");
  model.insert(model.end(), buffers.begin(), buffers.end());
  return model;
}

TEST(Nbssgd, OfOneMiniBatchIsSsgd) {
  TrainConfig config = config_of("nbssgd", "one");
  set(config, "mini-batches", 1);
  EXPECT_LE(relative_distance(trained(config), trained(config_of("ssgd", "ssgd"))), 1e-5);
}

TEST(Nbssgd, OfOneMiniBatchIsSsgdUnderASchedule) {
  TrainConfig config = config_of("nbssgd", "schedule");
  set(config, "mini-batches", 1);
  set(config, "schedule", "cosine");
  config.warm_up = 1;
  TrainConfig ssgd = config;
  ssgd.scheme = "ssgd";
  ssgd.run_dir = fresh_folder("nbssgd-ssgd-schedule");
  EXPECT_LE(relative_distance(trained(config), trained(ssgd)), 1e-5);
}

TEST(Nbssgd, OfOneMiniBatchIsSsgdOnUnequalDevices) {
  TrainConfig config = on_unequal_devices("barrier", 1);
  config.batch_size = 20;
  TrainConfig ssgd = config;
  ssgd.scheme = "ssgd";
  ssgd.run_dir = fresh_folder("nbssgd-ssgd-unequal");
  EXPECT_LE(relative_distance(trained(config), trained(ssgd)), 1e-5);
}

TEST(Nbssgd, OfOneWorkerIsSequentialHoweverTheBatchIsCut) {
  TrainConfig whole = config_of("local", "local");
  whole.workers = 1;
  const std::vector<float> sequential = trained(whole);
  for (const std::string commit : {"barrier", "racy"}) {
    for (const std::string aggregate : {"auto", "server"}) {
      const std::string name = fmt::format("alone-{}-{}", commit, aggregate);
      SCOPED_TRACE(name);
      TrainConfig cut = config_of("nbssgd", name);
      cut.workers = 1;
      set(cut, "commit", commit);
      set(cut, "aggregate", aggregate);
      set(cut, "mini-batches", 4);
      EXPECT_LE(relative_distance(trained(cut), sequential), 1e-5);
    }
  }
}

TEST(Nbssgd, RacyThroughAServerIsAsgdOfOneMiniBatch) {
  TrainConfig racy = on_unequal_devices("racy", 1);
  racy.batch_size = 20;
  set(racy, "aggregate", "server");
  racy.max_steps = 20;
  TrainConfig asgd = racy;
  asgd.scheme = "asgd";
  asgd.run_dir = fresh_folder("nbssgd-asgd");
  SimulatedJob job = toy_job(racy);
  job.run();
  EXPECT_GT(job.summary().at("staleness").at("max"), 0);
  EXPECT_EQ(job.summary().at("samples"), 3 * 20 * 20);
  toy_job(asgd).run();
  EXPECT_LE(relative_distance(last_checkpoint(racy).values("weight"),
                              last_checkpoint(asgd).values("weight")),
            1e-5);
}

TEST(Nbssgd, IsAddedByAServerAsByAllreduce) {
  TrainConfig config = config_of("nbssgd", "by-allreduce");
  const std::vector<float> by_allreduce = trained(config);
  config.run_dir = fresh_folder("nbssgd-by-server");
  set(config, "aggregate", "server");
  EXPECT_LE(relative_distance(trained(config), by_allreduce), 1e-5);
}

/// Samples of a round on unequal devices: each fast device computes eight mini-batches while the
/// slow one computes one.
constexpr double round_samples = (8 + 8 + 1) * 4;

void expect_whole_epochs(const SimulatedJob& job, double rounds_beyond) {
  const auto samples = job.summary().at("samples").get<double>();
  EXPECT_GE(samples, 4 * 600);
  EXPECT_LE(samples, 4 * 600 + rounds_beyond * round_samples);
}

TEST(Nbssgd, KeepsReplicasAlikeOnUnequalDevices) {
  SimulatedJob job = toy_job(on_unequal_devices("barrier"));
  job.run();
  EXPECT_THAT(job.params(), Each(Eq(job.params()[0])));
  EXPECT_THAT(job.buffers(), Each(Eq(job.buffers()[0])));
  EXPECT_EQ(job.summary().at("staleness").at("max"), 0);
  expect_whole_epochs(job, 1);
}

/// The fast devices compute their batch in half the time of one mini-batch of the slow device. If
/// they waited for its whole batch, they would compute for an eighth of the time only.
TEST(Nbssgd, WaitsForTheSlowestNoLongerThanAMiniBatch) {
  SimulatedJob job = toy_job(on_unequal_devices("barrier"));
  job.run();
  const auto& workers = job.summary().at("workers");
  EXPECT_GE(workers[0].at("computing_time_ratio"), 0.4) << workers[0];
  EXPECT_GE(workers[2].at("computing_time_ratio"), 0.9) << workers[2];
}

TEST(Nbssgd, KeepsReplicasAlikeWhileDevicesComputeOn) {
  SimulatedJob job = toy_job(on_unequal_devices("overlap"));
  job.run();
  EXPECT_THAT(job.params(), Each(Eq(job.params()[0])));
  EXPECT_THAT(job.buffers(), Each(Eq(job.buffers()[0])));
  // A mini-batch of the slow device takes two rounds.
  EXPECT_GE(job.summary().at("staleness").at("max"), 2);
  EXPECT_LE(job.summary().at("staleness").at("max"), 3);
  expect_whole_epochs(job, 2);  // the round that ends training, and the one under way by then
  for (const auto& worker : job.summary().at("workers")) {
    EXPECT_GE(worker.at("computing_time_ratio"), 0.95) << worker;
  }
}

TEST(Nbssgd, AddsIntoSharedMemoryOnUnequalDevices) {
  SimulatedJob job = toy_job(on_unequal_devices("racy"));
  job.run();
  expect_whole_epochs(job, 1);
  EXPECT_GT(job.summary().at("accuracy"), 0.5);
}

TEST(Nbssgd, PushesToAServerOnUnequalDevices) {
  TrainConfig config = on_unequal_devices("racy");
  set(config, "aggregate", "server");
  SimulatedJob job = toy_job(config);
  job.run();
  expect_whole_epochs(job, 1);
  EXPECT_GT(job.summary().at("accuracy"), 0.5);
  EXPECT_EQ(job.summary().at("servers").size(), 1);
}

TEST(Nbssgd, RacyIsResumed) {
  for (const std::string aggregate : {"auto", "server"}) {
    SCOPED_TRACE(aggregate);
    TrainConfig config = on_unequal_devices("racy");
    set(config, "aggregate", aggregate);
    config.epochs = 2;
    toy_job(config).run();
    config.epochs = 4;
    SimulatedJob rest = toy_job(config, /*resume=*/true);
    rest.run();
    expect_whole_epochs(rest, 1);
    EXPECT_GT(rest.summary().at("accuracy"), 0.5);
  }
}

TEST(Nbssgd, IsResumed) {
  TrainConfig config = on_unequal_devices("overlap");
  config.epochs = 2;
  toy_job(config).run();
  config.epochs = 4;
  SimulatedJob rest = toy_job(config, /*resume=*/true);
  rest.run();
  EXPECT_THAT(rest.params(), Each(Eq(rest.params()[0])));
  expect_whole_epochs(rest, 2);
}

}  // namespace
}  // namespace syncopate::nbssgd_test
