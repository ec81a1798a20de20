// Goal:   esync continues without failed workers, whenever they fail: the remaining workers end
//         with the same model, bit for bit, which contains all their samples; the failure of the
//         leading worker ends the job.
// Method: whole jobs of logistic regression in the simulator, with each allreduce algorithm, on a
//         network so slow that synchronization takes a large part of each round. Workers are killed
//         at chosen moments, and at many random ones.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/random.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/toy_job.hpp"

namespace syncopate::failures_test {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

/// Devices that take 1, 1, 2 and 5 s for a mini-batch.
constexpr const char* devices =
    "name = \"losses\"\nbatch_samples = 16\n[[devices]]\nname = \"fast\"\ncount = 2\n"
    "seconds_per_batch = 1.0\njitter = 0.05\n[[devices]]\nname = \"middling\"\nseconds_per_batch = "
    "2.0\n[[devices]]\nname = \"slow\"\nseconds_per_batch = 5.0\n";

struct Kill {
  Rank worker;
  TimePoint when;
};

struct Variant {
  std::string rule = "timed";
  std::string overlap = "on";
  std::string aggregate = "auto";
  std::string compress = "none";

  std::string to_string() const {
    return rule + ", overlap " + overlap + ", " + aggregate + ", " + compress;
  }
};

TrainConfig config_of(const Variant& variant) {
  TrainConfig config = toy_config(fresh_folder("losses"));
  config.scheme = "esync";
  config.workers = 4;
  config.epochs = 2;
  set(config, "pacing", variant.rule);
  set(config, "overlap", variant.overlap);
  set(config, "aggregate", variant.aggregate);
  set(config, "compress", variant.compress);
  set(config, "round-time", 1.0);
  config.cluster = cluster_of(config.run_dir, devices);
  return config;
}

/// Makes a job on a network on which the allreduce takes about half of each round.
SimulatedJob job_on_a_slow_network(const TrainConfig& config) {
  return toy_job(config, /*resume=*/false,
                 {.link = {.bandwidth = 2e5, .latency = 20ms}, .jitter = 1});
}

std::uint64_t samples_of(const SimulatedJob& job, const std::set<Rank>& but) {
  std::uint64_t samples = 0;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const auto& worker = job.summary().at("workers").at(rank);
    samples += but.contains(Rank{rank}) ? 0 : worker.at("samples").get<std::uint64_t>();
  }
  return samples;
}

/// Returns the workers that the job has dropped.
std::set<Rank> dropped_of(const SimulatedJob& job) {
  std::set<Rank> dropped;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    if (!job.summary().at("workers").at(rank).at("dropped_because").is_null()) {
      dropped.insert(Rank{rank});
    }
  }
  return dropped;
}

void expect_to_survive(const Variant& variant, const std::vector<Kill>& kills) {
  SimulatedJob job = job_on_a_slow_network(config_of(variant));
  std::set<Rank> killed;
  for (const Kill& kill : kills) {
    killed.insert(kill.worker);
    job.simulation().at(kill.when,
                        [&] { job.simulation().kill(SimulatedJob::node_of_worker(kill.worker)); });
  }
  job.run();
  ASSERT_EQ(job.failure(), nullptr);
  EXPECT_EQ(job.summary().at("ended_because"), "every epoch is done");
  const std::set<Rank> dropped = dropped_of(job);
  EXPECT_TRUE(std::includes(killed.begin(), killed.end(), dropped.begin(), dropped.end()));
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(job.errors()[rank], "");
    if (!killed.contains(Rank{rank})) {
      EXPECT_EQ(job.params()[rank], job.params()[0]);
      EXPECT_EQ(job.buffers()[rank], job.buffers()[0]);
    }
  }
  // The model lacks the steps that a failed worker took after its last complete round.
  EXPECT_GE(job.summary().at("samples"), samples_of(job, killed));
  EXPECT_LE(job.summary().at("samples"), samples_of(job, {}) + 16 * killed.size());
}

std::vector<Variant> every_way() {
  std::vector<Variant> ways;
  for (const std::string aggregate : {"auto", "ring", "butterfly", "binary-blocks", "tree"}) {
    for (const std::string overlap : {"on", "off"}) {
      ways.push_back({"timed", overlap, aggregate});
      ways.push_back({"paper", overlap, aggregate});
    }
  }
  for (const std::string compress : {"int8", "topk:0.1"}) {
    ways.push_back({"timed", "on", "auto", compress});
    ways.push_back({"paper", "off", "auto", compress});
  }
  return ways;
}

TEST(Losses, AreNoReasonForTheEndOfAJobWithALimitOfSteps) {
  TrainConfig config = config_of({});
  config.epochs = 50;
  config.max_steps = 20;
  SimulatedJob job = job_on_a_slow_network(config);
  job.simulation().at(TimePoint(2s),
                      [&] { job.simulation().kill(SimulatedJob::node_of_worker(Rank{3})); });
  job.run();
  ASSERT_EQ(job.failure(), nullptr);
  EXPECT_EQ(dropped_of(job), std::set<Rank>{Rank{3}});
  EXPECT_EQ(job.summary().at("ended_because"), "the limit of steps is reached");
}

TEST(Losses, OfASlowWorker) {
  for (const Variant& variant : every_way()) {
    SCOPED_TRACE(variant.to_string());
    expect_to_survive(variant, {{Rank{3}, TimePoint(21s)}});
  }
}

TEST(Losses, OfAFastWorkerInTheFirstRound) {
  for (const Variant& variant : every_way()) {
    SCOPED_TRACE(variant.to_string());
    expect_to_survive(variant, {{Rank{1}, TimePoint(500ms)}});
  }
}

TEST(Losses, OfTwoAtOnceAndOfAllButTheFirst) {
  for (const Variant& variant : every_way()) {
    SCOPED_TRACE(variant.to_string());
    expect_to_survive(variant, {{Rank{1}, TimePoint(30s)}, {Rank{3}, TimePoint(30s)}});
    expect_to_survive(
        variant, {{Rank{1}, TimePoint(30s)}, {Rank{2}, TimePoint(31s)}, {Rank{3}, TimePoint(32s)}});
  }
}

/// Returns the number of jobs with random losses; `script/check all` runs more of them.
std::uint64_t random_moments() {
  return std::getenv("SYNCOPATE_TEST_EVERYTHING") != nullptr ? 200 : 80;
}

TEST(Losses, AtAnyMoment) {
  const std::vector<Variant> ways = every_way();
  for (std::uint64_t seed = 0; seed < random_moments(); ++seed) {
    const Variant& variant = ways[seed % ways.size()];
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << variant.to_string());
    Random random(seed);
    std::vector<Kill> kills;
    for (const std::uint32_t worker : {1, 2, 3}) {
      if (random.uniform() < 0.5) {
        kills.push_back({Rank{worker}, TimePoint(from_seconds(0.5 + 45 * random.uniform()))});
      }
    }
    expect_to_survive(variant, kills);
  }
}

TEST(Losses, OfTheWorkerThatLeadsEndTheJob) {
  SimulatedJob job = job_on_a_slow_network(config_of({}));
  job.simulation().at(TimePoint(20s),
                      [&] { job.simulation().kill(SimulatedJob::node_of_worker(Rank{0})); });
  EXPECT_THROW(job.run(), sim::NodeFailed);
  EXPECT_THAT(job.errors()[1], HasSubstr("worker 0 (pid"));
}

}  // namespace
}  // namespace syncopate::failures_test
