// Goal:   the lines of a worker contain the time that it waited for evaluations, the staleness of
//         its gradients, the number of correctly classified samples, and the bytes received.
// Method: whole jobs of logistic regression in the simulator, on a network on which a snapshot
//         takes time; fixed expected values.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "base/file.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/toy_job.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::ordered_json;

TrainConfig lines_config(const std::string& scheme) {
  TrainConfig config = toy_config(fresh_folder("lines-" + scheme));
  config.scheme = scheme;
  config.cluster = cluster_of(config.run_dir, equal_speeds);
  config.epochs = 2;
  set(config, "server-learning-rate", *config.learning_rate);
  return config;
}

Json run_of(const TrainConfig& config) {
  SimulatedJob job =
      toy_job(config, /*resume=*/false, {.link = {.bandwidth = 1e6, .latency = 5ms}});
  job.run();
  return job.summary();
}

std::vector<Json> lines_of(const TrainConfig& config, std::uint32_t rank) {
  std::istringstream text(read_file(RunFolder(config.run_dir).worker_log(Rank{rank})));
  std::vector<Json> lines;
  for (std::string line; std::getline(text, line);) {
    lines.push_back(Json::parse(line));
  }
  return lines;
}

TEST(WorkerLines, HaveTheShareOfSamplesThatWereClassifiedRightly) {
  const TrainConfig config = lines_config("ssgd");
  run_of(config);
  double first = 0;
  double last = 0;
  for (std::uint32_t rank = 0; rank < config.workers; ++rank) {
    const std::vector<Json> lines = lines_of(config, rank);
    for (const Json& line : lines) {
      const double correct =
          line.at("accuracy").get<double>() * line.at("own_samples").get<double>();
      EXPECT_NEAR(correct, std::round(correct), 1e-9) << line;
      EXPECT_LE(line.at("accuracy"), 1);
    }
    first += lines.front().at("accuracy").get<double>();
    last += lines.back().at("accuracy").get<double>();
  }
  EXPECT_LT(first, 1) << "of three untrained replicas of ten classes";
  EXPECT_GT(last, first);
}

TEST(WorkerLines, HaveTheStalenessOfAsynchronousGradients) {
  const TrainConfig config = lines_config("asgd");
  const Json summary = run_of(config);
  double sum = 0;
  double lines = 0;
  for (std::uint32_t rank = 0; rank < config.workers; ++rank) {
    for (const Json& line : lines_of(config, rank)) {
      sum += line.at("staleness").get<double>();
      ++lines;
    }
  }
  EXPECT_GT(sum, 0);
  EXPECT_NEAR(sum / lines, summary.at("staleness").at("mean"), 0.1);
}

TEST(WorkerLines, HaveNoStalenessWhereReplicasAgree) {
  const TrainConfig config = lines_config("ssgd");
  run_of(config);
  for (const Json& line : lines_of(config, 1)) {
    EXPECT_TRUE(line.at("staleness").is_null());
    EXPECT_EQ(line.at("bytes_received"), 0) << "without a server";
  }
}

TEST(WorkerLines, HaveTheBytesThatAServerSent) {
  const TrainConfig config = lines_config("asgd");
  const Json summary = run_of(config);
  const std::vector<Json> lines = lines_of(config, 0);
  constexpr double model = 7850 * sizeof(float);
  EXPECT_GE(lines.back().at("bytes_received").get<double>(),
            model * static_cast<double>(lines.size()));
  EXPECT_EQ(lines.back().at("bytes_received"), summary.at("workers").at(0).at("received_bytes"));
}

TEST(WorkerLines, CountTheTimeInWhichSnapshotsHoldAWorker) {
  for (const char* scheme : {"ssgd", "esync"}) {
    SCOPED_TRACE(scheme);
    TrainConfig config = lines_config(scheme);
    config.eval_every = {};
    config.checkpoint_every = {};
    run_of(config);
    for (std::uint32_t rank = 0; rank < config.workers; ++rank) {
      EXPECT_EQ(lines_of(config, rank).back().at("evaluate_seconds"), 0);
    }
    config.run_dir = fresh_folder("lines-held");
    config.checkpoint_every = {Every::Unit::epochs, 0.25};
    run_of(config);
    for (std::uint32_t rank = 0; rank < config.workers; ++rank) {
      double before = 0;
      for (const Json& line : lines_of(config, rank)) {
        EXPECT_GE(line.at("evaluate_seconds"), before);
        before = line.at("evaluate_seconds");
      }
      EXPECT_GT(before, 0) << "worker " << rank << " sends or awaits the states of all workers";
    }
  }
}

}  // namespace
}  // namespace syncopate
