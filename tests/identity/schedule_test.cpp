// Goal:   the learning rate of a step follows from the samples that the job has trained on before
//         it, in any round and on any worker.
// Method: jobs of logistic regression on devices with step times of 1 : 1 : 40. The warm-up covers
//         the whole training, so the learning rate is proportional to the samples trained on so
//         far. Devices have a known speed without jitter, so the times in a worker's log give the
//         expected rate of its last step.

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "base/file.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/toy_job.hpp"

namespace syncopate::schedule_test {
namespace {

constexpr const char* fortyfold =
    "name = \"fortyfold\"\nbatch_samples = 16\n[[devices]]\nname = \"fast\"\ncount = 2\n"
    "seconds_per_batch = 1.0\n[[devices]]\nname = \"slow\"\nseconds_per_batch = 40.0\n";

/// Speed of all devices together.
constexpr double samples_per_second = 16 + 16 + 16.0 / 40;

/// Returns the largest difference, over all workers, between a logged rate and the rate that
/// follows from the samples until then, as a share of the full rate. Skips each worker's first
/// line, which is written before the worker knows the progress of the others.
double largest_error(const std::string& scheme, const std::string& pacing,
                     double from_seconds = 0) {
  TrainConfig config = toy_config(fresh_folder("schedule-" + scheme + pacing));
  config.scheme = scheme;
  set(config, "pacing", pacing);
  config.cluster = cluster_of(config.run_dir, fortyfold);
  config.epochs = 16;
  config.warm_up = config.epochs;
  config.checkpoint_every = {};
  set(config, "local-steps", 8);
  set(config, "moving-rate", 0.3);
  set(config, "server-learning-rate", 0.01);
  toy_job(config).run();
  const double samples_in_all = 600 * config.epochs;
  double largest = 0;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    std::istringstream log(read_file(RunFolder(config.run_dir).worker_log(Rank{rank})));
    std::string line;
    for (std::getline(log, line); std::getline(log, line);) {
      const auto round = Recorder::Json::parse(line);
      const double seconds = round.at("training_seconds");
      if (seconds < from_seconds) {
        continue;
      }
      const double expected = seconds * samples_per_second / samples_in_all;
      const double rate = round.at("learning_rate").get<double>() / *config.learning_rate;
      largest = std::max(largest, std::abs(rate - std::min(1.0, expected)));
    }
  }
  return largest;
}

/// A round by the paper's rule has 82 mini-batches, 0.135 of training. In the first round each
/// worker takes one step, and the slow device does not know that the others ended theirs long
/// before. So its rate lags by one round once, in its third step.
TEST(Schedule, IsNotLateByARound) {
  EXPECT_LE(largest_error("esync", "paper"), 0.14);
  EXPECT_LE(largest_error("esync", "paper", 150), 0.015);
}

/// The slow device takes two samples in 5 s, 0.017 of training, and synchronizes after them.
TEST(Schedule, FollowsShortRounds) {
  EXPECT_LE(largest_error("esync", "timed"), 0.025);
}

TEST(Schedule, OfLocalStepsBetweenExchangesGoesOn) {
  for (const std::string scheme : {"easgd", "downpour"}) {
    EXPECT_LE(largest_error(scheme, "timed"), 0.03) << scheme;
  }
}

}  // namespace
}  // namespace syncopate::schedule_test
