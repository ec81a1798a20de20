// Goal:   a whole training job has equal replicas, resumes exactly, names a dead worker on every
//         node, ends cleanly, and advances at the pace of the slowest device.
// Method: coordinator, workers and evaluator as `syncopate train` runs them, with logistic
//         regression on a small synthetic set, in the simulator.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.hpp"
#include "checkpoint/checkpoint.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/toy_job.hpp"

namespace syncopate::job_test {
namespace {

namespace fs = std::filesystem;
using testing::Each;
using testing::Eq;
using testing::HasSubstr;
using namespace std::chrono_literals;

/// Writes a cluster file of three devices that take one second per mini-batch.
fs::path slow_cluster(const fs::path& folder) {
  return cluster_of(folder,
                    "name = \"slow\"\nbatch_samples = 16\n"
                    "[[devices]]\nname = \"d\"\ncount = 3\nseconds_per_batch = 1.0\n");
}

TEST(Job, EndsWithEqualReplicasAndASummary) {
  const TrainConfig config = toy_config(fresh_folder("ends"));
  SimulatedJob job = toy_job(config);
  job.run();
  EXPECT_THAT(job.params(), Each(Eq(job.params()[0])));
  EXPECT_THAT(job.buffers(), Each(Eq(job.buffers()[0])));
  EXPECT_EQ(job.summary().at("samples"), 4 * 600);
  EXPECT_EQ(job.summary().at("ended_because"), "every epoch is done");
  EXPECT_EQ(job.summary().at("rounds"), 4 * 13);  // 200 samples a worker in batches of 16
  EXPECT_EQ(job.summary().at("evaluations").size(), 4U);
  EXPECT_GT(job.summary().at("accuracy"), 0.5);
  EXPECT_EQ(Recorder::Json::parse(read_file(config.run_dir / "summary.json")), job.summary());
}

TEST(Job, IndependentDrawsAreSummedOverTheRootOfTheirNumber) {
  TrainConfig config = toy_config(fresh_folder("init"));
  set(config, "init", "independent");
  config.max_steps = 1;
  config.learning_rate = 1e-9;
  SimulatedJob job = toy_job(config);
  job.run();
  EXPECT_THAT(job.params(), Each(Eq(job.params()[0])));
  double squares = 0;
  for (const float value : job.params()[0]) {
    squares += double{value} * double{value};
  }
  // The toy's draws have deviation 0.1; 7,850 of them estimate it to about 1 percent.
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(job.params()[0].size())), 0.1, 0.004);
}

TEST(Job, ResumingEqualsNotHavingStopped) {
  const TrainConfig whole = toy_config(fresh_folder("whole"));
  SimulatedJob uninterrupted = toy_job(whole);
  uninterrupted.run();

  TrainConfig cut = toy_config(fresh_folder("cut"));
  cut.max_steps = 20;  // in the middle of the second epoch
  SimulatedJob first = toy_job(cut);
  first.run();
  EXPECT_EQ(first.summary().at("ended_because"), "the limit of steps is reached");
  cut.max_steps.reset();
  SimulatedJob second = toy_job(cut, /*resume=*/true);
  second.run();

  EXPECT_EQ(second.params(), uninterrupted.params());
  EXPECT_EQ(second.buffers(), uninterrupted.buffers());
  EXPECT_EQ(second.summary().at("samples"), uninterrupted.summary().at("samples"));
  EXPECT_EQ(second.summary().at("accuracy"), uninterrupted.summary().at("accuracy"));
  const Safetensors one = last_checkpoint(cut);
  const Safetensors other = last_checkpoint(whole);
  ASSERT_EQ(one.names(), other.names());
  for (const std::string& name : one.names()) {
    EXPECT_EQ(one.values(name), other.values(name)) << name;
  }
}

TEST(Job, TheSameSeedGivesTheSameEvents) {
  SimulatedJob first = toy_job(toy_config(fresh_folder("seed")));
  first.run();
  SimulatedJob second = toy_job(toy_config(fresh_folder("seed")));
  second.run();
  EXPECT_EQ(first.events(), second.events());
}

TEST(Job, TheDeathOfAWorkerIsNamedOnEveryOtherNode) {
  const fs::path folder = fresh_folder("death");
  TrainConfig config = toy_config(folder);
  config.cluster = slow_cluster(folder);
  SimulatedJob job = toy_job(config);
  job.simulation().at(TimePoint(std::chrono::seconds(10)),
                      [&] { job.simulation().kill(SimulatedJob::node_of_worker(Rank{1})); });
  EXPECT_THROW(job.run(), sim::NodeFailed);
  EXPECT_THAT(job.errors()[0], HasSubstr("worker 1 (pid 0 on sim) died; last heard"));
  EXPECT_THAT(job.errors()[2], HasSubstr("worker 1 (pid 0 on sim) died; last heard"));
  EXPECT_LT(job.simulation().now(), TimePoint(std::chrono::seconds(15)));
}

/// The network is so slow that the allreduce takes nearly all of each step.
TEST(Job, TheDeathOfAWorkerInASumIsNamedByEveryAlgorithm) {
  for (const std::string aggregate : {"auto", "ring", "butterfly", "binary-blocks", "tree"}) {
    for (const Duration moment : {1000ms, 1017ms, 1034ms}) {
      SCOPED_TRACE(testing::Message() << aggregate << " " << to_seconds(moment));
      TrainConfig config = toy_config(fresh_folder("sum"));
      config.workers = 4;
      set(config, "aggregate", aggregate);
      SimulatedJob job = toy_job(config, /*resume=*/false, {.link = {.bandwidth = 1e6}});
      job.simulation().at(TimePoint(moment),
                          [&] { job.simulation().kill(SimulatedJob::node_of_worker(Rank{2})); });
      EXPECT_THROW(job.run(), sim::NodeFailed);
      for (const std::size_t other : {0, 1, 3}) {
        EXPECT_THAT(job.errors()[other], HasSubstr("worker 2 (pid 0 on sim) died; last heard"));
      }
      EXPECT_LT(job.simulation().now(), TimePoint(moment + 5s));
    }
  }
}

TEST(Job, TheDeathOfTheCoordinatorIsNamedOnEveryWorker) {
  const fs::path folder = fresh_folder("headless");
  TrainConfig config = toy_config(folder);
  config.cluster = slow_cluster(folder);
  SimulatedJob job = toy_job(config);
  job.simulation().at(TimePoint(std::chrono::seconds(10)),
                      [&] { job.simulation().kill(coordinator_node); });
  EXPECT_THROW(job.run(), sim::NodeFailed);
  EXPECT_THAT(job.errors(), Each(HasSubstr("the coordinator died")));
}

TEST(Job, AnInterruptEndsWithACheckpointOfTheLastRound) {
  const fs::path folder = fresh_folder("interrupt");
  TrainConfig config = toy_config(folder);
  config.cluster = slow_cluster(folder);
  SimulatedJob job = toy_job(config);
  job.simulation().at(TimePoint(std::chrono::milliseconds(5500)), [&] { job.interrupt(); });
  job.run();
  EXPECT_EQ(job.summary().at("ended_because"), "interrupted");
  EXPECT_EQ(job.summary().at("rounds"), 6);
  EXPECT_EQ(latest_checkpoint(folder / "checkpoints"), folder / "checkpoints" / checkpoint_name(6));
}

TEST(Job, StopsSoonAfterTheTargetIsConfirmed) {
  TrainConfig config = toy_config(fresh_folder("target"));
  config.epochs = 500;
  config.target_accuracy = 0.6;
  config.eval_every = {Every::Unit::steps, 5};
  const fs::path folder = config.run_dir;
  config.cluster = slow_cluster(folder);
  SimulatedJob job = toy_job(config);
  job.run();
  EXPECT_EQ(job.summary().at("ended_because"), "the target accuracy is reached");
  EXPECT_GE(job.summary().at("accuracy"), 0.6);
  EXPECT_LT(job.summary().at("rounds"), 500 * 13);
  EXPECT_TRUE(job.summary().at("time_to_target_seconds").is_number());
}

TEST(Job, RunsAtThePaceOfItsSlowestDevice) {
  const fs::path folder = fresh_folder("pace");
  TrainConfig config = toy_config(folder);
  config.epochs = 1;
  config.cluster = cluster_of(folder,
                              "name = \"mixed\"\nbatch_samples = 16\n[[devices]]\nname = "
                              "\"fast\"\ncount = 2\nseconds_per_batch = 0.25\n"
                              "[[devices]]\nname = \"slow\"\nseconds_per_batch = 1.0\n");
  SimulatedJob job = toy_job(config);
  job.run();
  const auto& summary = job.summary();
  // Twelve rounds of 1 s and one of the last 8 samples, which take 0.5 s.
  EXPECT_NEAR(summary.at("training_seconds"), 12.5, 0.05);
  const auto& workers = summary.at("workers");
  EXPECT_NEAR(workers[0].at("computing_time_ratio"), 0.25, 0.01);
  EXPECT_NEAR(workers[0].at("wait_ratio"), 0.75, 0.01);
  EXPECT_NEAR(workers[2].at("computing_time_ratio"), 1.0, 0.01);
  EXPECT_NEAR(summary.at("cluster_efficiency"), 48.0 / (16 / 0.25 * 2 + 16), 0.01);
  EXPECT_EQ(workers[0].at("pace_overruns"), 0);
}

TEST(Job, AFullRunFolderEndsTheJobEverywhere) {
  TrainConfig config = toy_config(fresh_folder("full"));
  SimulatedJob job = toy_job(config);
  // Replaces the folder of checkpoints by a file, so that no checkpoint can be written.
  job.simulation().at(TimePoint{}, [&] {
    fs::remove_all(config.run_dir / "checkpoints");
    write_file(config.run_dir / "checkpoints", "");
  });
  EXPECT_THROW(job.run(), sim::NodeFailed);
  EXPECT_THAT(job.errors(), Each(HasSubstr("cannot create")));
  EXPECT_FALSE(fs::exists(config.run_dir / "summary.json"));
}

}  // namespace
}  // namespace syncopate::job_test
