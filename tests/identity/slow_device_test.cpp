// Goal:   a device that takes 1000 times as long as the others for a mini-batch trains with them
//         to the end, under every scheme. When it hangs or dies, the job names it in time, and
//         continues without it or ends.
// Method: whole jobs of logistic regression in the simulator, with devices of 0.5 s and 500 s for
//         a mini-batch; a device hangs in an outage of its cluster, during which its node still
//         sends heartbeats.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.hpp"
#include "scheme/scheme_spec.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/toy_job.hpp"

namespace syncopate::slow_device_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using namespace std::chrono_literals;

constexpr std::uint32_t workers = 3;
constexpr std::uint32_t batch = 16;
constexpr Rank slow{2};

constexpr const char* thousand_to_one =
    "name = \"thousand\"\nbatch_samples = 16\n[[devices]]\nname = \"fast\"\ncount = 2\n"
    "seconds_per_batch = 0.5\n[[devices]]\nname = \"slow\"\nseconds_per_batch = 500.0\n";

TrainConfig config_of(const std::string& scheme) {
  TrainConfig config = toy_config(fresh_folder("slow-device"));
  config.scheme = scheme;
  set(config, "local-steps", 2);
  set(config, "server-learning-rate", 0.01);  // read by downpour only
  config.eval_every = {};
  config.checkpoint_every = {};
  config.cluster = cluster_of(config.run_dir, thousand_to_one);
  return config;
}

const Recorder::Json& worker_of(const SimulatedJob& job, Rank rank) {
  return job.summary().at("workers").at(rank.value);
}

std::uint64_t samples_of(const SimulatedJob& job, Rank rank) {
  return worker_of(job, rank).at("samples").get<std::uint64_t>();
}

/// Runs a job. Expects that no worker is dropped and that the model has the steps of each worker.
void run_whole(SimulatedJob& job) {
  job.run();
  ASSERT_EQ(job.failure(), nullptr);
  std::uint64_t samples = 0;
  for (const Recorder::Json& worker : job.summary().at("workers")) {
    EXPECT_TRUE(worker.at("dropped_because").is_null());
    samples += worker.at("samples").get<std::uint64_t>();
  }
  EXPECT_EQ(job.summary().at("samples"), samples);
}

/// Four steps of each worker: 2,000 s of the slow one.
void expect_four_steps_of_each(TrainConfig config) {
  config.max_steps = 4;
  SimulatedJob job = toy_job(config);
  run_whole(job);
  for (std::uint32_t rank = 0; rank < config.workers; ++rank) {
    EXPECT_EQ(worker_of(job, Rank{rank}).at("steps"), 4);
    EXPECT_EQ(samples_of(job, Rank{rank}), 4 * batch);
  }
  EXPECT_GE(job.simulation().now(), TimePoint(2000s));
}

/// Rounds in which the fast ones compute while the slow one does.
void expect_rounds_with_the_slow_one(TrainConfig config, Duration at_least) {
  config.epochs = value_of(config, "commit") == "barrier" ? 1 : 20;
  SimulatedJob job = toy_job(config);
  run_whole(job);
  EXPECT_GE(job.summary().at("samples"), config.epochs * 600);
  EXPECT_GT(samples_of(job, slow), 0U);
  EXPECT_GT(samples_of(job, Rank{0}), 5 * samples_of(job, slow));
  EXPECT_EQ(job.params()[slow.value], job.params()[0]);
  EXPECT_GE(job.simulation().now(), TimePoint(at_least));
}

TEST(SlowDevice, TrainsToTheEndUnderEveryScheme) {
  for (const SchemeSpec* const scheme : all_schemes()) {
    SCOPED_TRACE(scheme->name);
    TrainConfig config = config_of(std::string(scheme->name));
    if (scheme->traits.topology == Topology::none) {
      config.workers = 1;
      config.cluster = cluster_of(config.run_dir,
                                  "name = \"slow\"\nbatch_samples = 16\n[[devices]]\n"
                                  "name = \"slow\"\nseconds_per_batch = 500.0\n");
    }
    if (scheme->traits.sync_mode == SyncMode::local_rounds) {
      expect_rounds_with_the_slow_one(config, 93s);
    } else if (find_option(*scheme, "backup-workers") != nullptr) {
      set(config, "backup-workers", 0);  // or nobody would wait
      expect_four_steps_of_each(config);
    } else {
      expect_four_steps_of_each(config);
    }
  }
}

TEST(SlowDevice, TrainsInEveryWayOfSynchronizing) {
  for (const std::string aggregate : {"ring", "binary-blocks", "tree", "server"}) {
    SCOPED_TRACE(aggregate);
    for (const std::string scheme : {"ssgd", "local-sgd"}) {
      TrainConfig config = config_of(scheme);
      set(config, "aggregate", aggregate);
      expect_four_steps_of_each(config);
    }
  }
  for (const std::string overlap : {"on", "off"}) {
    SCOPED_TRACE("esync by the paper's pace, overlap " + overlap);
    TrainConfig config = config_of("esync");
    set(config, "pacing", "paper");
    set(config, "overlap", overlap);
    expect_rounds_with_the_slow_one(config, 500s);
  }
  TrainConfig served = config_of("esync");
  set(served, "aggregate", "server");
  expect_rounds_with_the_slow_one(served, 93s);
  for (const std::string commit : {"barrier", "overlap"}) {
    SCOPED_TRACE("nbssgd through a server, " + commit);
    TrainConfig config = config_of("nbssgd");
    set(config, "commit", commit);
    set(config, "aggregate", "server");
    expect_rounds_with_the_slow_one(config, 93s);
  }
}

/// Makes a job on three devices that take a second for a mini-batch. One of them hangs from 100 s
/// on, for 90 s.
TrainConfig config_with_an_outage(const std::string& scheme) {
  TrainConfig config = toy_config(fresh_folder("hang"));
  config.scheme = scheme;
  config.eval_every = {};
  config.wait_limit = 5;
  config.epochs = 10;  // over before the next outage
  config.cluster = cluster_of(config.run_dir,
                              "name = \"hang\"\nbatch_samples = 16\n[[devices]]\nname = \"d\"\n"
                              "count = 3\nseconds_per_batch = 1.0\n"
                              "[pauses]\nevery = 100.0\nlasting = 90.0\n");
  return config;
}

Rank hanging_worker(const TrainConfig& config) {
  const JobPlan plan(resolve_config(config, {}));
  for (std::uint32_t rank = 0; rank < workers; ++rank) {
    if (plan.pacer(Rank{rank})->end_of_step(Step{}, batch, 99500ms) > 150s) {
      return Rank{rank};
    }
  }
  throw InternalError("the outage hits no device");
}

/// Changes the seed until the outage hits another worker than worker 0, which leads.
TrainConfig with_another_hanging(TrainConfig config) {
  while (hanging_worker(config) == Rank{0}) {
    ++config.seed;
  }
  return config;
}

TEST(SlowDevice, OneThatHangsEndsTheJobByItsName) {
  for (const std::string aggregate : {"ring", "tree", "server"}) {
    SCOPED_TRACE(aggregate);
    TrainConfig config = config_with_an_outage("ssgd");
    set(config, "aggregate", aggregate);
    const Rank hanging = hanging_worker(config);
    SimulatedJob job = toy_job(config);
    EXPECT_THROW(job.run(), sim::NodeFailed);
    for (std::uint32_t rank = 0; rank < workers; ++rank) {
      EXPECT_THAT(job.errors()[rank],
                  AllOf(HasSubstr(fmt::format(" for worker {} (pid 0", hanging.value)),
                        HasSubstr("s expected at the most)")));
    }
    // Its step may have half a mini-batch; the limit is 20 times the usual duration of the step.
    EXPECT_GE(job.simulation().now(), TimePoint(109s));
    EXPECT_LT(job.simulation().now(), TimePoint(126s));
  }
}

TEST(SlowDevice, OneThatHangsIsDroppedWhereTheOthersGoOn) {
  for (const std::string scheme : {"esync", "ssp"}) {
    SCOPED_TRACE(scheme);
    const TrainConfig config = with_another_hanging(config_with_an_outage(scheme));
    const Rank hanging = hanging_worker(config);
    SimulatedJob job = toy_job(config);
    EXPECT_THROW(job.run(), sim::NodeFailed) << "the worker that was dropped";
    ASSERT_EQ(job.failure(), nullptr);
    for (std::uint32_t rank = 0; rank < workers; ++rank) {
      const Recorder::Json& reason = worker_of(job, Rank{rank}).at("dropped_because");
      if (Rank{rank} == hanging) {
        EXPECT_THAT(reason.get<std::string>(), HasSubstr("expected at the most"));
      } else {
        EXPECT_TRUE(reason.is_null());
      }
    }
  }
}

TEST(SlowDevice, OneThatDiesInItsLongStepIsNamedAtOnce) {
  for (const std::string scheme : {"ssgd", "esync", "ssp"}) {
    SCOPED_TRACE(scheme);
    TrainConfig config = config_of(scheme);
    config.epochs = 40;
    set(config, "slack", 0);
    SimulatedJob job = toy_job(config);
    job.simulation().at(TimePoint(200s),
                        [&] { job.simulation().kill(SimulatedJob::node_of_worker(slow)); });
    if (scheme == "ssgd") {
      EXPECT_THROW(job.run(), sim::NodeFailed);
      EXPECT_THAT(job.errors()[0], StartsWith("worker 2 (pid 0 on sim) died; last heard"));
      EXPECT_LT(job.simulation().now(), TimePoint(205s));
    } else {
      job.run();
      EXPECT_THAT(worker_of(job, slow).at("dropped_because").get<std::string>(),
                  StartsWith("worker 2 (pid 0 on sim) died; last heard"));
    }
  }
}

}  // namespace
}  // namespace syncopate::slow_device_test
