// Goal:   a job of an asynchronous scheme ends when it has trained on all samples or reaches its
//         time limit, even in the middle of a step of its slowest device; the evaluated and saved
//         model contains the steps of all workers.
// Method: whole jobs of logistic regression in the simulator, on two fast devices and one that is
//         a hundred times slower, or on three equal devices, one of which hangs for a while.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.hpp"
#include "checkpoint/checkpoint.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/toy_job.hpp"

namespace syncopate::ends_test {
namespace {

constexpr const char* hundredfold =
    "name = \"hundredfold\"\nbatch_samples = 16\n[[devices]]\nname = \"fast\"\ncount = 2\n"
    "seconds_per_batch = 1.0\n[[devices]]\nname = \"slow\"\nseconds_per_batch = 100.0\n";

TrainConfig config_of(const std::string& scheme, const std::string& name) {
  TrainConfig config = toy_config(fresh_folder("ends-" + name + "-" + scheme));
  config.scheme = scheme;
  config.cluster = cluster_of(config.run_dir, hundredfold);
  set(config, "server-learning-rate", 0.01);
  return config;
}

std::uint64_t samples_of_workers(const SimulatedJob& job) {
  std::uint64_t samples = 0;
  for (const auto& worker : job.summary().at("workers")) {
    samples += worker.at("samples").get<std::uint64_t>();
  }
  return samples;
}

/// The two fast devices need 75 s for the 2,400 samples; with the slow one it takes a little less.
TEST(Ends, WhenTheSamplesAreComplete) {
  for (const std::string scheme : {"asgd", "dc-asgd", "downpour", "easgd", "hogwild"}) {
    SCOPED_TRACE(scheme);
    SimulatedJob job = toy_job(config_of(scheme, "complete"));
    job.run();
    const auto& summary = job.summary();
    EXPECT_EQ(summary.at("ended_because"), "every epoch is done");
    EXPECT_GE(summary.at("samples"), 2400);
    // A fast worker may exceed the total by the steps that it takes between two exchanges.
    EXPECT_LE(summary.at("samples"), 2400 + 2 * 10 * 16);
    EXPECT_LE(summary.at("training_seconds"), 76 + 10) << "of the fast devices' time";
    EXPECT_GE(summary.at("workers")[2].at("cancelled_steps"), 1);
    EXPECT_LE(summary.at("workers")[2].at("samples"), 16) << "but its step in flight";
  }
}

/// The job drops a gradient of the slow device that arrives after the end; it would raise the
/// maximum staleness.
TEST(Ends, NoGradientOfAStepInFlightEntersTheModel) {
  SimulatedJob job = toy_job(config_of("asgd", "staleness"));
  job.run();
  EXPECT_EQ(job.summary().at("samples"), 2400);
  EXPECT_LE(job.summary().at("staleness").at("max"), 2);
}

TEST(Ends, AJobThatIsInterruptedCancelsStepsInFlight) {
  SimulatedJob job = toy_job(config_of("asgd", "interrupt"));
  job.simulation().at(TimePoint(std::chrono::seconds(20)), [&] { job.interrupt(); });
  job.run();
  EXPECT_EQ(job.summary().at("ended_because"), "interrupted");
  EXPECT_LE(job.summary().at("training_seconds"), 21);
  EXPECT_EQ(job.summary().at("workers")[2].at("cancelled_steps"), 1);
  EXPECT_EQ(job.summary().at("samples"), samples_of_workers(job));
}

/// Worker 1 hangs from the middle of its second step until long after the time limit. Under `ssp`
/// and `backup` the others wait for it.
TEST(Ends, AtTheLimitOfTimeThoughAWorkerStandsStill) {
  using namespace std::chrono_literals;
  for (const std::string scheme :
       {"asgd", "dc-asgd", "ssp", "backup", "downpour", "easgd", "hogwild"}) {
    SCOPED_TRACE(scheme);
    TrainConfig config = config_of(scheme, "time");
    config.cluster = cluster_of(config.run_dir, equal_speeds);
    config.max_time = 5;
    set(config, "slack", 1);
    set(config, "backup-workers", 0);
    SimulatedJob job = toy_job(config);
    const NodeId standing = SimulatedJob::node_of_worker(Rank{1});
    job.simulation().at(TimePoint(1500ms), [&] { job.simulation().hang(standing); });
    job.simulation().at(TimePoint(13s), [&] { job.simulation().go_on(standing); });
    job.run();
    const auto& summary = job.summary();
    EXPECT_EQ(summary.at("ended_because"), "the limit of time is reached");
    EXPECT_GE(summary.at("training_seconds"), 4.99);
    EXPECT_LE(summary.at("training_seconds"), 5 + 1);
    EXPECT_EQ(summary.at("workers")[1].at("cancelled_steps"), 1);
    EXPECT_EQ(summary.at("workers")[1].at("samples"), 16);
    EXPECT_EQ(summary.at("samples"), samples_of_workers(job)) << "of steps that were not cancelled";
    EXPECT_GE(job.simulation().now(), TimePoint(13s)) << "it leaves the job itself";
  }
}

TEST(Ends, AtTheLimitOfTimeInAStepOfTheSlowDevice) {
  TrainConfig config = config_of("asgd", "slow-time");
  config.max_time = 5;
  SimulatedJob job = toy_job(config);
  job.run();
  EXPECT_EQ(job.summary().at("ended_because"), "the limit of time is reached");
  EXPECT_LE(job.summary().at("training_seconds"), 5 + 1);
  EXPECT_EQ(job.summary().at("workers")[2].at("cancelled_steps"), 1);
  EXPECT_EQ(job.summary().at("workers")[2].at("samples"), 0);
}

/// The model also contains the mini-batches that a worker computed since its last contribution.
TEST(Ends, AJobThatIsInterruptedLosesNoMiniBatchOfARacyContribution) {
  for (const std::string aggregate : {"auto", "server"}) {
    for (int tenth = 0; tenth < 10; ++tenth) {
      SCOPED_TRACE(testing::Message() << aggregate << ", after 20." << tenth << " s");
      TrainConfig config = config_of("nbssgd", "racy-interrupt");
      set(config, "commit", "racy");
      set(config, "aggregate", aggregate);
      config.batch_size = 64;
      set(config, "mini-batches", 8);
      SimulatedJob job = toy_job(config);
      job.simulation().at(TimePoint(std::chrono::milliseconds(20'000 + 100 * tenth)),
                          [&] { job.interrupt(); });
      job.run();
      EXPECT_EQ(job.summary().at("ended_because"), "interrupted");
      EXPECT_EQ(job.summary().at("samples"), samples_of_workers(job));
    }
  }
}

/// Worker 0 ends its steps long before the slow device does; the saved model has the steps of both.
TEST(Ends, TheModelInSharedMemoryIsSavedWhenAllHaveEnded) {
  for (const std::string scheme : {"hogwild", "nbssgd"}) {
    SCOPED_TRACE(scheme);
    TrainConfig config = config_of(scheme, "steps");
    set(config, "commit", "racy");
    config.max_steps = 8;
    SimulatedJob job = toy_job(config);
    job.run();
    const std::uint64_t samples = samples_of_workers(job);
    EXPECT_EQ(job.summary().at("samples"), samples);
    EXPECT_EQ(job.summary().at("evaluations").back().at("samples"), samples);
    EXPECT_EQ(Checkpoint(read_file(*latest_checkpoint(config.run_dir / "checkpoints")), "it", "toy")
                  .progress()
                  .samples,
              samples);
    EXPECT_EQ(last_checkpoint(config).values("weight"), job.params()[2]);
  }
}

}  // namespace
}  // namespace syncopate::ends_test
