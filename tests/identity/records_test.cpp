// Goal:   the files of a run record correctly the first model, each worker's contribution to each
//         round, the decisions of the pacer, and the time and bytes used.
// Method: whole jobs of logistic regression in the simulator, on unequal devices; the test reads
//         their files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <sstream>

#include "base/file.hpp"
#include "checkpoint/checkpoint.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/toy_job.hpp"
#include "tests/support/toy_replica.hpp"

namespace syncopate::records_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Devices that take 1, 1 and 4 s for a mini-batch.
constexpr const char* unequal =
    "name = \"unequal\"\nbatch_samples = 16\n[[devices]]\nname = \"fast\"\ncount = 2\n"
    "seconds_per_batch = 1.0\njitter = 0.05\n[[devices]]\nname = \"slow\"\nseconds_per_batch = "
    "4.0\n";

TrainConfig config_of(const std::string& scheme, const std::string& name) {
  TrainConfig config = toy_config(fresh_folder("records-" + name));
  config.scheme = scheme;
  config.cluster = cluster_of(config.run_dir, unequal);
  config.epochs = 2;
  set(config, "local-steps", 3);
  set(config, "server-learning-rate", *config.learning_rate);
  return config;
}

std::vector<Json> lines_of(const fs::path& path) {
  std::istringstream text(read_file(path));
  std::vector<Json> lines;
  for (std::string line; std::getline(text, line);) {
    lines.push_back(Json::parse(line));
  }
  return lines;
}

std::vector<Json> log_of(const TrainConfig& config, std::uint32_t rank) {
  return lines_of(RunFolder(config.run_dir).worker_log(Rank{rank}));
}

Json summary_after(const TrainConfig& config) {
  SimulatedJob job = toy_job(config);
  job.run();
  return job.summary();
}

/// With this model a user can recompute the first step of any scheme.
TEST(Records, HoldTheModelBeforeTheFirstStep) {
  std::vector<float> first;
  for (const char* scheme : {"ssgd", "esync", "nbssgd", "asgd", "downpour", "easgd", "hogwild"}) {
    SCOPED_TRACE(scheme);
    TrainConfig config = config_of(scheme, "first");
    config.checkpoint_every = {Every::Unit::epochs, 0.25};
    summary_after(config);
    const fs::path folder = config.run_dir / "checkpoints";
    const fs::path path = folder / checkpoint_name(0);
    const Checkpoint checkpoint(read_file(path), path.string(), "toy");
    EXPECT_EQ(checkpoint.progress(), TrainingProgress{});
    const std::vector<float> weight = Safetensors(read_file(path), path.string()).values("weight");
    first = first.empty() ? weight : first;
    EXPECT_EQ(weight, first) << "the same of all schemes";
    EXPECT_NE(weight, last_checkpoint(config).values("weight"));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 4) << "it and the newest three";

    config.run_dir = fresh_folder("records-never");
    config.checkpoint_every = {};
    summary_after(config);
    EXPECT_TRUE(fs::is_empty(config.run_dir / "checkpoints"));
  }
}

TEST(Records, ARunThatGoesOnFromItsFirstModelIsTheSameRun) {
  for (const char* scheme : {"ssgd", "esync", "nbssgd", "asgd"}) {
    SCOPED_TRACE(scheme);
    const TrainConfig config = config_of(scheme, "again");
    summary_after(config);
    const std::vector<float> weight = last_checkpoint(config).values("weight");
    for (const auto& entry : fs::directory_iterator(config.run_dir / "checkpoints")) {
      if (round_of(entry.path()) > 0) {
        fs::remove(entry.path());
      }
    }
    SimulatedJob resumed = toy_job(config, /*resume=*/true);
    resumed.run();
    EXPECT_EQ(last_checkpoint(config).values("weight"), weight);
  }
}

struct OwnWork {
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
};

/// Returns a worker's total contribution up to each round that it logged. Two rounds that end
/// together, as at a checkpoint, have one line.
std::map<std::uint64_t, OwnWork> contributed_until(const TrainConfig& config, std::uint32_t rank) {
  std::map<std::uint64_t, OwnWork> contributed;
  OwnWork sum;
  for (const Json& line : log_of(config, rank)) {
    sum.steps += line.at("own_steps").get<std::uint64_t>();
    sum.samples += line.at("own_samples").get<std::uint64_t>();
    contributed[line.at("round")] = sum;
  }
  return contributed;
}

/// Returns the samples of all workers up to a round, or nothing if a worker has no line for it.
std::optional<std::uint64_t> samples_in(
    const std::vector<std::map<std::uint64_t, OwnWork>>& contributed, std::uint64_t round) {
  std::uint64_t samples = 0;
  for (const auto& one : contributed) {
    if (!one.contains(round)) {
      return std::nullopt;
    }
    samples += one.at(round).samples;
  }
  return samples;
}

/// This also holds for schemes whose workers compute while the previous round is under way.
TEST(Records, TellEachWorkersPartOfEachRound) {
  for (const char* scheme : {"ssgd", "local-sgd", "esync", "nbssgd"}) {
    SCOPED_TRACE(scheme);
    const TrainConfig config = config_of(scheme, "parts");
    summary_after(config);
    std::vector<std::map<std::uint64_t, OwnWork>> contributed;
    for (std::uint32_t rank = 0; rank < config.workers; ++rank) {
      contributed.push_back(contributed_until(config, rank));
    }
    int rounds = 0;
    for (const Json& line : log_of(config, 0)) {
      if (const auto samples = samples_in(contributed, line.at("round"))) {
        ++rounds;
        EXPECT_EQ(*samples, line.at("samples")) << line.dump();
      }
    }
    EXPECT_GT(rounds, 3);
  }
}

/// Returns the work that the worker did after each decision of the pacer, by round.
std::map<std::uint64_t, OwnWork> taken_by(const TrainConfig& config, std::uint32_t rank) {
  std::map<std::uint64_t, OwnWork> taken;
  for (const Json& line : lines_of(config.run_dir / "pacer.jsonl")) {
    EXPECT_FALSE(line.at("reason").get<std::string>().empty());
    EXPECT_GE(line.at("seconds"), 0);
    if (line.at("worker") != rank || line.at("taken_steps").is_null()) {
      continue;  // null for the round that was under way at the end
    }
    taken[line.at("round")] = {.steps = line.at("taken_steps"),
                               .samples = line.at("round_samples")};
    if (!line.at("planned_steps").is_null()) {
      EXPECT_GE(line.at("taken_steps"), line.at("planned_steps"));
      EXPECT_GE(line.at("planned_steps"), line.at("steps_before"));
    }
  }
  return taken;
}

TEST(Records, HoldEachDecisionOfThePacerAndWhatBecameOfIt) {
  for (const char* pacing : {"timed", "paper"}) {
    SCOPED_TRACE(pacing);
    TrainConfig config = config_of("esync", "pacer");
    set(config, "pacing", pacing);
    summary_after(config);
    for (std::uint32_t rank = 0; rank < config.workers; ++rank) {
      SCOPED_TRACE(rank);
      const std::map<std::uint64_t, OwnWork> taken = taken_by(config, rank);
      const std::map<std::uint64_t, OwnWork> contributed = contributed_until(config, rank);
      ASSERT_GT(contributed.size(), 3U);
      ASSERT_EQ(taken.size(), taken.rbegin()->first) << "a decision for each round";
      OwnWork sum;
      for (const auto& [round, part] : taken) {
        sum.steps += part.steps;
        sum.samples += part.samples;
        if (contributed.contains(round)) {
          EXPECT_EQ(sum.steps, contributed.at(round).steps) << "round " << round;
          EXPECT_EQ(sum.samples, contributed.at(round).samples) << "round " << round;
        }
      }
    }
  }
}

TEST(Records, TellForwardBackwardAndUpdateApart) {
  const TrainConfig config = config_of("esync", "apart");
  const Json summary = summary_after(config);
  for (std::uint32_t rank = 0; rank < config.workers; ++rank) {
    const Json line = log_of(config, rank).back();
    const double compute = line.at("compute_seconds");
    const double forward = line.at("forward_seconds");
    EXPECT_GT(compute, 0);
    EXPECT_NEAR(forward, compute / 3, 1e-6 * compute) << "of an emulated device";
    EXPECT_NEAR(forward + line.at("backward_seconds").get<double>() +
                    line.at("update_seconds").get<double>(),
                compute, 1e-6 * compute);
  }
  for (const Json& line : lines_of(config.run_dir / "evaluations.jsonl")) {
    EXPECT_GE(line.at("evaluation_seconds"), 0);
    EXPECT_EQ(line.at("batch_norm"), "running") << "the toy has a buffer";
  }
}

/// Counts how often its statistics were recomputed.
class RecomputedReplica : public LogisticReplica {
 public:
  explicit RecomputedReplica(std::uint64_t& recomputed)
      : LogisticReplica(
            {.features = small_dataset().train.shape.values(), .classes = small_dataset().classes}),
        recomputed_(recomputed) {}

  void recompute_statistics(const std::function<bool(Batch& into)>& next) override {
    ++recomputed_;
    LogisticReplica::recompute_statistics(next);
  }

 private:
  std::uint64_t& recomputed_;
};

TEST(Records, SayWithWhichStatisticsAModelWasEvaluated) {
  for (const std::string batch_norm : {"running", "recomputed"}) {
    SCOPED_TRACE(batch_norm);
    TrainConfig config = config_of("ssgd", batch_norm);
    set(config, "batch-norm", batch_norm);
    RunFolder(config.run_dir).create();
    std::uint64_t recomputed = 0;
    SimulatedJob job(
        {.config = resolve_config(config, {}), .dataset = small_dataset(), .make_replica = [&] {
           return std::make_unique<RecomputedReplica>(recomputed);
         }});
    job.run();
    const Json& evaluations = job.summary().at("evaluations");
    ASSERT_FALSE(evaluations.empty());
    EXPECT_EQ(recomputed, batch_norm == "recomputed" ? evaluations.size() : 0);
    for (const Json& evaluation : evaluations) {
      EXPECT_EQ(evaluation.at("batch_norm"), batch_norm);
    }
  }
}

/// Bytes of snapshots are counted separately: evaluations add only a few heartbeats to a worker's
/// traffic.
TEST(Records, CountNoSnapshotAsTraffic) {
  for (const char* scheme : {"ssgd", "esync", "asgd"}) {
    SCOPED_TRACE(scheme);
    TrainConfig config = config_of(scheme, "traffic");
    config.eval_every = {};
    const Json without = summary_after(config);
    const double logged = log_of(config, 0).back().at("bytes_sent");
    config.run_dir = fresh_folder("records-traffic-tested");
    config.eval_every = {Every::Unit::epochs, 0.1};
    const Json with = summary_after(config);
    const double traffic = without.at("traffic_bytes");
    EXPECT_NEAR(with.at("traffic_bytes"), traffic, 0.02 * traffic);
    EXPECT_NEAR(log_of(config, 0).back().at("bytes_sent"), logged, 0.02 * logged);
    const Json& keeper = with.at(scheme == std::string("asgd") ? "servers" : "workers").at(0);
    const double model = 7850 * sizeof(float);
    EXPECT_GE(keeper.at("evaluation_bytes"), 19 * model);
    EXPECT_LT(without.at("workers").at(0).at("evaluation_bytes"), 100) << "that no more will come";
  }
}

/// Small steps may cost more time per sample. So the stand-alone throughput of a device is that of
/// its steps with a whole batch, or of its profile if it takes no such step.
TEST(Records, TellTheSpeedOfADeviceByItselfInWholeBatches) {
  for (const char* scheme : {"esync", "nbssgd"}) {
    SCOPED_TRACE(scheme);
    const TrainConfig config = config_of(scheme, "alone");
    const Json summary = summary_after(config);
    for (std::uint32_t rank = 0; rank < config.workers; ++rank) {
      const double expected = rank < 2 ? 16 : 4;
      const double tolerance = scheme == std::string("nbssgd") ? 1e-9 : 0.05;
      EXPECT_NEAR(summary.at("workers").at(rank).at("stand_alone_throughput"), expected,
                  tolerance * expected);
    }
  }
}

}  // namespace
}  // namespace syncopate::records_test
