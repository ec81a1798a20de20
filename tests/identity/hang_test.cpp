// Goal:   if the main task of a member hangs while its heartbeats continue, the job names that
//         member and no other, under every scheme and in any phase, and goes on without it if the
//         scheme allows that. A request to end the job works even if a member hangs.
// Method: whole jobs of logistic regression in the simulator, on a network so slow that
//         synchronization takes a large part of each step. The main task of one node stops for good
//         at several moments of a step, while its other tasks go on.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/errors.hpp"
#include "scheme/scheme_spec.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/toy_job.hpp"

namespace syncopate::hang_test {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;
using namespace std::chrono_literals;

constexpr Rank hanging{1};

TrainConfig config_of(const std::string& scheme) {
  TrainConfig config = toy_config(fresh_folder("hangs"));
  config.scheme = scheme;
  config.wait_limit = 5;
  config.epochs = 8;
  config.checkpoint_every = {};
  set(config, "local-steps", 2);
  set(config, "server-learning-rate", 0.01);  // read by downpour only
  config.cluster = cluster_of(config.run_dir, equal_speeds);
  return config;
}

SimulatedJob job_of(const TrainConfig& config) {
  return toy_job(config, /*resume=*/false, {.link = {.bandwidth = 4e5, .latency = 20ms}});
}

NodeId evaluator_of(const TrainConfig& config) {
  const JobPlan plan(resolve_config(config, {}));
  return NodeId{1 + config.workers + plan.config().servers};
}

/// Runs a job in which one node hangs from `when` on. Returns the reason for which the job ends, or
/// for which it goes on without `worker`. Expects that it drops no other worker.
std::string reason_of(SimulatedJob& job, NodeId node, TimePoint when,
                      std::optional<Rank> worker = hanging) {
  job.simulation().at(when, [&job, node] { job.simulation().hang(node); });
  try {
    job.run();
  } catch (const sim::NodeFailed&) {
    // Even if the job goes on, the hanging worker's own node ends with an error.
  }
  try {
    if (job.failure()) {
      std::rethrow_exception(job.failure());
    }
  } catch (const Error& error) {
    return error.what();
  }
  for (std::uint32_t rank = 0; rank < job.params().size(); ++rank) {
    const auto& dropped = job.summary().at("workers").at(rank).at("dropped_because");
    EXPECT_EQ(dropped.is_null(), Rank{rank} != worker) << rank;
  }
  if (!worker) {
    return "";
  }
  const auto& reason = job.summary().at("workers").at(worker->value).at("dropped_because");
  return reason.is_null() ? "" : reason.get<std::string>();
}

TEST(Hang, OfAWorkerIsNamedUnderEveryScheme) {
  for (const std::string scheme : {"ssgd", "nbssgd", "asgd", "hogwild", "ssp", "esync", "downpour",
                                   "easgd", "backup", "local-sgd"}) {
    for (const Duration when : {20300ms, 20900ms, 21200ms, 21700ms}) {
      SCOPED_TRACE(fmt::format("{} at {:.1f} s", scheme, to_seconds(when)));
      SimulatedJob job = job_of(config_of(scheme));
      const std::string reason =
          reason_of(job, SimulatedJob::node_of_worker(hanging), TimePoint(when));
      EXPECT_THAT(reason, AnyOf(MatchesRegex("worker 1 .pid 0 on sim. hangs: last heard .*"),
                                MatchesRegex(".* for worker 1 .pid 0 on sim., last heard [^;]*")));
      EXPECT_THAT(reason, Not(HasSubstr("node ")));
      EXPECT_THAT(job.blamed(), ElementsAre(SimulatedJob::node_of_worker(hanging)));
      if (job.failure()) {  // the limit is 20 times its step of 1 s, plus a step that just began
        EXPECT_LT(job.simulation().now(), TimePoint(when + 24s));
      }
    }
  }
}

TEST(Hang, OfAServerIsNamed) {
  for (const std::string scheme : {"asgd", "ssp", "ssgd"}) {
    SCOPED_TRACE(scheme);
    TrainConfig config = config_of(scheme);
    set(config, "aggregate", "server");
    SimulatedJob job = job_of(config);
    const std::string reason = reason_of(job, job.node_of_server(Rank{0}), TimePoint(20300ms));
    EXPECT_THAT(reason, AnyOf(StartsWith("server 0 (pid 0 on sim) hangs: last heard"),
                              HasSubstr(" for server 0 (pid 0 on sim), last heard")));
    EXPECT_THAT(job.blamed(), ElementsAre(job.node_of_server(Rank{0})));
    EXPECT_LT(job.simulation().now(), TimePoint(20300ms + 10s));
  }
}

TEST(Hang, OfTheEvaluatorIsNamedAndTheJobGoesOn) {
  for (const std::string scheme : {"ssgd", "asgd", "hogwild"}) {
    SCOPED_TRACE(scheme);
    const TrainConfig config = config_of(scheme);
    SimulatedJob job = job_of(config);
    reason_of(job, evaluator_of(config), TimePoint(20300ms), std::nullopt);
    EXPECT_EQ(job.failure(), nullptr);
    EXPECT_THAT(job.summary().at("evaluator_dropped_because").get<std::string>(),
                StartsWith("the evaluator (pid 0 on sim) hangs: last heard"));
  }
}

TEST(Hang, OfTheCoordinatorIsNamedByAllMembers) {
  for (const std::string scheme : {"ssgd", "asgd", "esync", "hogwild"}) {
    SCOPED_TRACE(scheme);
    SimulatedJob job = job_of(config_of(scheme));
    reason_of(job, coordinator_node, TimePoint(20300ms));
    for (const std::string& error : job.errors()) {
      EXPECT_EQ(error,
                "the coordinator hangs: its main task has not gone on for 10 s, though its process "
                "lives");
    }
    EXPECT_THAT(job.blamed(), IsEmpty()) << "it is not theirs";
    EXPECT_LT(job.simulation().now(), TimePoint(20300ms + 14s));
  }
}

TEST(Hang, OfTheEvaluatorIsToldToItAlone) {
  const TrainConfig config = config_of("ssgd");
  SimulatedJob job = job_of(config);
  job.simulation().at(TimePoint(20300ms), [&] { job.simulation().hang(evaluator_of(config)); });
  EXPECT_THROW(job.run(), sim::NodeFailed);
  EXPECT_THAT(job.blamed(), ElementsAre(evaluator_of(config)));
}

TEST(Hang, DoesNotKeepAJobFromEndingAsRequested) {
  for (const std::string scheme : {"ssgd", "nbssgd", "asgd", "hogwild", "esync"}) {
    SCOPED_TRACE(scheme);
    TrainConfig config = config_of(scheme);
    config.cluster = cluster_of(config.run_dir,
                                "name = \"fast\"\nbatch_samples = 16\n[[devices]]\nname = \"d\"\n"
                                "count = 3\nseconds_per_batch = 0.05\n");
    config.epochs = 1000;
    SimulatedJob job = toy_job(config);
    job.simulation().at(TimePoint(5s), [&] { job.interrupt(); });
    const std::string reason =
        reason_of(job, SimulatedJob::node_of_worker(hanging), TimePoint(4900ms));
    EXPECT_THAT(reason, StartsWith("ended as requested, without the rounds since the last "
                                   "checkpoint, since it does not come to its end: "));
    EXPECT_THAT(reason, HasSubstr("worker 1 (pid 0 on sim), last heard"));
    EXPECT_THAT(job.blamed(), Contains(SimulatedJob::node_of_worker(hanging)));
    EXPECT_LT(job.simulation().now(), TimePoint(7s));
  }
}

TEST(Hang, IsNotSuspectedOfMembersThatRightlyWait) {
  for (const std::string scheme : {"ssgd", "asgd", "hogwild", "esync", "downpour"}) {
    SCOPED_TRACE(scheme);
    TrainConfig config = config_of(scheme);
    config.wait_limit = 2;
    config.epochs = 1;
    config.cluster = cluster_of(config.run_dir,
                                "name = \"slow\"\nbatch_samples = 16\n[[devices]]\nname = \"d\"\n"
                                "count = 2\nseconds_per_batch = 1.0\n[[devices]]\nname = \"s\"\n"
                                "seconds_per_batch = 30.0\n");
    SimulatedJob job = job_of(config);
    job.run();
    EXPECT_EQ(job.failure(), nullptr);
    EXPECT_THAT(job.blamed(), IsEmpty());
    for (const auto& worker : job.summary().at("workers")) {
      EXPECT_TRUE(worker.at("dropped_because").is_null());
    }
  }
}

}  // namespace
}  // namespace syncopate::hang_test
