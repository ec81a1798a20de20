// Goal:   a job goes on without its evaluator, whenever that dies: training ends as it would, in
//         lockstep with the same bits, and the last checkpoint is of the last round.
// Method: whole jobs of logistic regression in the simulator, whose evaluators are killed at random
//         moments.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "checkpoint/checkpoint.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/toy_job.hpp"

namespace syncopate {
namespace {

using testing::HasSubstr;

TrainConfig watched_config(const std::string& scheme) {
  TrainConfig config = toy_config(fresh_folder("evaluator-" + scheme));
  config.scheme = scheme;
  config.epochs = 2;
  config.cluster = cluster_of(config.run_dir, equal_speeds);
  return config;
}

/// The last node of a job.
NodeId evaluator_of(const SimulatedJob& job, const TrainConfig& config, bool served) {
  return served ? NodeId{job.node_of_server(Rank{0}).value + 1} : NodeId{config.workers + 1};
}

void expect_trained(const SimulatedJob& job, const TrainConfig& config) {
  ASSERT_EQ(job.failure(), nullptr);
  const auto& summary = job.summary();
  EXPECT_EQ(summary.at("ended_because"), "every epoch is done");
  const auto last = latest_checkpoint(RunFolder(config.run_dir).checkpoints());
  ASSERT_TRUE(last);
  EXPECT_EQ(round_of(*last), summary.at("rounds").get<std::uint64_t>());
}

TEST(EvaluatorLosses, LeaveTheBitsOfSsgdAsTheyWere) {
  const TrainConfig config = watched_config("ssgd");
  SimulatedJob whole = toy_job(config);
  whole.run();
  EXPECT_TRUE(whole.summary().at("evaluator_dropped_because").is_null());
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const TrainConfig again = watched_config("ssgd");
    SimulatedJob job = toy_job(again);
    const auto when = TimePoint(from_seconds(0.5 + 20 * Random(seed).uniform()));
    job.simulation().at(when, [&] { job.simulation().kill(evaluator_of(job, again, false)); });
    job.run();
    expect_trained(job, again);
    EXPECT_EQ(job.params(), whole.params());
    EXPECT_THAT(job.summary().at("evaluator_dropped_because").get<std::string>(),
                HasSubstr("the evaluator (pid 0 on sim) died"));
  }
}

TEST(EvaluatorLosses, EndNoOtherJob) {
  for (const std::string scheme : {"local-sgd", "esync", "nbssgd", "asgd", "backup", "downpour"}) {
    SCOPED_TRACE(scheme);
    TrainConfig config = watched_config(scheme);
    const bool served = scheme == "asgd" || scheme == "backup" || scheme == "downpour";
    if (scheme == "downpour") {
      set(config, "server-learning-rate", 0.01);
    }
    SimulatedJob job = toy_job(config);
    job.simulation().at(TimePoint(std::chrono::milliseconds(15500)),
                        [&] { job.simulation().kill(evaluator_of(job, config, served)); });
    job.run();
    expect_trained(job, config);
    EXPECT_THAT(job.summary().at("evaluator_dropped_because").get<std::string>(),
                HasSubstr("the evaluator (pid 0 on sim) died"));
  }
}

}  // namespace
}  // namespace syncopate
