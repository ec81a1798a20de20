// Goal:   a job goes on when its evaluator dies at any moment: training ends as without the loss
//         (in lockstep with the same bits), and the last checkpoint is that of the last round. A
//         replacement evaluator continues the tests up to the last one.
// Method: whole jobs of logistic regression in the simulator; the evaluator is killed at random
//         moments, and a replacement joins later or not at all.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "checkpoint/checkpoint.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/toy_job.hpp"

namespace syncopate::evaluator_losses_test {
namespace {

using testing::HasSubstr;

TrainConfig watched_config(const std::string& scheme) {
  TrainConfig config = toy_config(fresh_folder("evaluator-" + scheme));
  config.scheme = scheme;
  config.epochs = 2;
  config.cluster = cluster_of(config.run_dir, equal_speeds);
  return config;
}

/// One scheme of each kind: with and without a server, in lockstep and asynchronous.
const std::vector<std::string> all_kinds{"local-sgd", "esync",  "nbssgd",
                                         "asgd",      "backup", "downpour"};

bool has_server(const std::string& scheme) {
  return scheme == "asgd" || scheme == "backup" || scheme == "downpour";
}

/// Returns `watched_config` with a learning rate at which the toy job converges.
TrainConfig config_of(const std::string& scheme) {
  TrainConfig config = watched_config(scheme);
  if (scheme == "downpour") {
    set(config, "server-learning-rate", 0.01);
  }
  return config;
}

/// Returns the evaluator, which is the last node of a job.
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
  for (const std::string& scheme : all_kinds) {
    SCOPED_TRACE(scheme);
    const TrainConfig config = config_of(scheme);
    SimulatedJob job = toy_job(config);
    job.simulation().at(TimePoint(std::chrono::milliseconds(15500)), [&] {
      job.simulation().kill(evaluator_of(job, config, has_server(scheme)));
    });
    job.run();
    expect_trained(job, config);
    EXPECT_THAT(job.summary().at("evaluator_dropped_because").get<std::string>(),
                HasSubstr("the evaluator (pid 0 on sim) died"));
  }
}

TimePoint at(double seconds) {
  return TimePoint(from_seconds(seconds));
}

void restart_evaluator_at(SimulatedJob& job, TimePoint when, NodeId dying, Duration pause) {
  job.simulation().at(when, [&job, dying] { job.simulation().kill(dying); });
  job.simulation().at(when + pause, [&job] { job.restart_evaluator(); });
}

/// The rounds of the evaluations, in their order.
std::vector<std::uint64_t> rounds_tested(const SimulatedJob& job) {
  std::vector<std::uint64_t> rounds;
  for (const auto& evaluation : job.summary().at("evaluations")) {
    rounds.push_back(evaluation.at("round").get<std::uint64_t>());
  }
  return rounds;
}

void expect_tested_to_the_end(const SimulatedJob& job, unsigned restarts) {
  const auto& summary = job.summary();
  EXPECT_TRUE(summary.at("evaluator_dropped_because").is_null());
  EXPECT_EQ(summary.at("evaluator_restarts"), restarts);
  const auto rounds = rounds_tested(job);
  ASSERT_FALSE(rounds.empty());
  EXPECT_TRUE(std::is_sorted(rounds.begin(), rounds.end()));
  EXPECT_EQ(rounds.back(), summary.at("rounds").get<std::uint64_t>());
}

TEST(EvaluatorRestarts, LeaveTheBitsOfSsgdAsTheyWereAndTestItsLastRound) {
  const TrainConfig config = watched_config("ssgd");
  SimulatedJob whole = toy_job(config);
  whole.run();
  EXPECT_EQ(whole.summary().at("evaluator_restarts"), 0);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    const TrainConfig again = watched_config("ssgd");
    SimulatedJob job = toy_job(again);
    restart_evaluator_at(job, at(0.5 + 15 * Random(seed).uniform()),
                         evaluator_of(job, again, false), std::chrono::seconds(2));
    job.run();
    expect_trained(job, again);
    expect_tested_to_the_end(job, 1);
    EXPECT_EQ(job.params(), whole.params());
    EXPECT_EQ(job.summary().at("accuracy"), whole.summary().at("accuracy"));
  }
}

TEST(EvaluatorRestarts, TestTheNewestModelThatNobodyHasTested) {
  TrainConfig config = watched_config("ssgd");
  config.eval_every = {Every::Unit::steps, 1};
  SimulatedJob job = toy_job(config);
  restart_evaluator_at(job, at(3.5), evaluator_of(job, config, false),
                       std::chrono::milliseconds(4200));
  job.run();
  expect_tested_to_the_end(job, 1);
  const auto rounds = rounds_tested(job);
  ASSERT_GE(rounds.size(), 6U);
  EXPECT_EQ((std::vector(rounds.begin(), rounds.begin() + 5)),
            (std::vector<std::uint64_t>{1, 2, 3, 7, 8}));
}

TEST(EvaluatorRestarts, GoOnUnderEveryScheme) {
  for (const std::string& scheme : all_kinds) {
    SCOPED_TRACE(scheme);
    const TrainConfig config = config_of(scheme);
    SimulatedJob job = toy_job(config);
    const NodeId first = evaluator_of(job, config, has_server(scheme));
    restart_evaluator_at(job, at(5.2), first, std::chrono::milliseconds(600));
    restart_evaluator_at(job, at(9.2), NodeId{first.value + 1}, std::chrono::milliseconds(600));
    job.run();
    expect_trained(job, config);
    expect_tested_to_the_end(job, 2);
  }
}

TEST(EvaluatorRestarts, NoticeTheTargetAccuracy) {
  TrainConfig config = watched_config("ssgd");
  config.epochs = 500;
  config.target_accuracy = 0.6;
  SimulatedJob job = toy_job(config);
  restart_evaluator_at(job, at(2), evaluator_of(job, config, false), std::chrono::seconds(1));
  job.run();
  EXPECT_EQ(job.summary().at("ended_because"), "the target accuracy is reached");
}

/// An evaluator that joins while the job ends either tests the last model or comes too late. In
/// neither case may the job wait for it.
TEST(EvaluatorRestarts, HoldUpNoEnd) {
  for (const std::string scheme : {"ssgd", "asgd"}) {
    SimulatedJob whole = toy_job(watched_config(scheme));
    whole.run();
    const TimePoint end = whole.simulation().now();
    std::size_t restarts = 0;
    constexpr int moments = 24;
    for (int moment = 0; moment < moments; ++moment) {
      SCOPED_TRACE(scheme + ", moment " + std::to_string(moment));
      const TrainConfig config = watched_config(scheme);
      SimulatedJob job = toy_job(config);
      const NodeId first = evaluator_of(job, config, has_server(scheme));
      const double before_the_end = std::exp(-12.0 * moment / moments);
      restart_evaluator_at(job, end - std::chrono::seconds(2), first,
                           std::chrono::seconds(2) - from_seconds(before_the_end));
      try {
        job.run();
      } catch (const sim::NodeFailed& failure) {
        EXPECT_EQ(failure.node(), NodeId{first.value + 1}) << failure.what();
      }
      expect_trained(job, config);
      EXPECT_LT(job.simulation().now(), end + std::chrono::seconds(5));
      const bool came = job.summary().at("evaluator_restarts") == 1;
      EXPECT_EQ(job.summary().at("evaluator_dropped_because").is_null(), came);
      restarts += came ? 1 : 0;
    }
    EXPECT_GT(restarts, 0U);
    EXPECT_LT(restarts, std::size_t{moments}) << "some come too late";
  }
}

}  // namespace
}  // namespace syncopate::evaluator_losses_test
