// Goal:   a run that resumes from a checkpoint equals an uninterrupted one, bit for bit, in schemes
//         whose replicas agree at the round of the checkpoint; in other schemes each worker resumes
//         at its own position.
// Method: a job of logistic regression on unequal devices in the simulator, and a second one that
//         resumes from a checkpoint of the first; damaged checkpoints; learning rates at which
//         training overflows.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <exception>
#include <filesystem>
#include <set>
#include <sstream>
#include <vector>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "checkpoint/checkpoint.hpp"
#include "tests/support/config_options.hpp"
#include "tests/support/toy_job.hpp"

namespace syncopate::resume_test {
namespace {

namespace fs = std::filesystem;

/// Three speeds with jitter. The time of a step on one device is no multiple of that on another.
constexpr const char* unequal =
    "name = \"unequal\"\nbatch_samples = 16\n[[devices]]\nname = \"fast\"\n"
    "seconds_per_batch = 1.0\njitter = 0.05\n[[devices]]\nname = \"middle\"\nseconds_per_batch = "
    "2.3\n"
    "jitter = 0.05\n[[devices]]\nname = \"slow\"\nseconds_per_batch = 9.0\njitter = 0.05\n";

TrainConfig config_of(const std::string& scheme, const std::string& name) {
  TrainConfig config = toy_config(fresh_folder("resume-" + name));
  config.scheme = scheme;
  config.cluster = cluster_of(config.run_dir, unequal);
  set(config, "schedule", "cosine");
  config.warm_up = 0.5;
  return config;
}

/// Makes a run folder that holds only the oldest checkpoint of `whole` after round 0.
TrainConfig cut_off(const TrainConfig& whole) {
  TrainConfig cut = whole;
  cut.run_dir = fs::path(whole.run_dir.string() + "-cut");
  fs::remove_all(cut.run_dir);
  RunFolder(cut.run_dir).create();
  std::set<fs::path> checkpoints;
  for (const auto& entry : fs::directory_iterator(whole.run_dir / "checkpoints")) {
    if (round_of(entry.path()) > 0) {
      checkpoints.insert(entry.path());
    }
  }
  EXPECT_GE(checkpoints.size(), 2U);
  fs::copy(*checkpoints.begin(), cut.run_dir / "checkpoints" / checkpoints.begin()->filename());
  return cut;
}

/// Returns the counters of a checkpoint except times: a resumed run measures its links again, so
/// its times differ by microseconds.
Metadata counts_of(const Safetensors& checkpoint) {
  Metadata counts = checkpoint.metadata();
  std::erase_if(counts, [](const auto& entry) {
    return entry.first.ends_with("training_ns") || entry.first.starts_with("pacer.");
  });
  return counts;
}

void expect_same_values(const TrainConfig& one_config, const TrainConfig& other_config) {
  const Safetensors one = last_checkpoint(one_config);
  const Safetensors other = last_checkpoint(other_config);
  EXPECT_EQ(counts_of(one), counts_of(other));
  ASSERT_EQ(one.names(), other.names());
  for (const std::string& name : one.names()) {
    EXPECT_TRUE(one.values(name) == other.values(name)) << name;
  }
}

/// Expects that a resumed run ends with the same bits in all that a checkpoint holds.
void expect_resumes_exactly(const TrainConfig& whole) {
  SimulatedJob uninterrupted = toy_job(whole);
  uninterrupted.run();
  const TrainConfig cut = cut_off(whole);
  SimulatedJob resumed = toy_job(cut, /*resume=*/true);
  resumed.run();
  EXPECT_TRUE(resumed.params() == uninterrupted.params());
  EXPECT_TRUE(resumed.buffers() == uninterrupted.buffers());
  for (const char* figure : {"samples", "rounds", "accuracy"}) {
    EXPECT_EQ(resumed.summary().at(figure), uninterrupted.summary().at(figure)) << figure;
  }
  EXPECT_NEAR(resumed.summary().at("training_seconds"),
              uninterrupted.summary().at("training_seconds"), 0.01);
  EXPECT_LT(resumed.summary().at("session_seconds"), resumed.summary().at("training_seconds"));
  EXPECT_GE(uninterrupted.summary().at("session_seconds"),
            uninterrupted.summary().at("training_seconds"));
  expect_same_values(cut, whole);
}

TEST(Resume, OfLockstepIsExact) {
  for (const std::string scheme : {"ssgd", "local-sgd", "diloco"}) {
    SCOPED_TRACE(scheme);
    TrainConfig config = config_of(scheme, scheme);
    set(config, "local-steps", 4);
    expect_resumes_exactly(config);
  }
}

TEST(Resume, OfCompressedGradientsKeepsWhatIsOwed) {
  for (const std::string codec : {"int8", "onebit", "topk:0.1"}) {
    SCOPED_TRACE(codec);
    TrainConfig config = config_of("ssgd", "compressed");
    set(config, "compress", codec);
    expect_resumes_exactly(config);
  }
}

/// Each worker has its own control variates, length of local progress and number of local steps.
TEST(Resume, OfDriftCorrectionIsExact) {
  for (const std::string scheme : {"esync", "local-sgd"}) {
    SCOPED_TRACE(scheme);
    TrainConfig config = config_of(scheme, "split-" + scheme);
    config.split = Split::parse("class");
    set(config, "local-steps", 4);
    config.epochs = 8;
    expect_resumes_exactly(config);
    EXPECT_EQ(value_of(resolve_config(config, {}), "drift-correction"), "scaffold");
  }
}

TEST(Resume, OfPacedRoundsIsExact) {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    for (const std::string pacing : {"timed", "paper"}) {
      for (const std::string overlap : {"on", "off"}) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << " " << pacing << " " << overlap);
        TrainConfig config = config_of("esync", "esync");
        config.seed = seed;
        config.epochs = 8;
        set(config, "pacing", pacing);
        set(config, "overlap", overlap);
        expect_resumes_exactly(config);
      }
    }
  }
}

TEST(Resume, OfPacedRoundsWithAnOuterOptimizerAndCompressionIsExact) {
  TrainConfig config = config_of("esync", "esync-outer");
  config.epochs = 8;
  set(config, "outer-optimizer", "nesterov");
  set(config, "global-lr", 0.3);
  set(config, "compress", "int8");
  expect_resumes_exactly(config);
}

TEST(Resume, OfRoundsOfFragmentsIsExact) {
  for (const std::string compress : {"none", "topk:0.2/2bit"}) {
    TrainConfig config = config_of("esync", "esync-fragments");
    config.epochs = 8;
    set(config, "fragments", 3);
    set(config, "compress", compress);
    expect_resumes_exactly(config);
  }
}

/// The model that is saved is not the one from which workers take their steps.
TEST(Resume, OfAnAveragedModelIsExact) {
  for (const std::string scheme : {"esync", "diloco"}) {
    TrainConfig config = config_of(scheme, scheme + "-gpa");
    config.epochs = 8;
    set(config, "outer-optimizer", "gpa");
    set(config, "local-steps", 4);
    expect_resumes_exactly(config);
  }
}

TEST(Resume, OfRoundsByAServerIsExact) {
  TrainConfig config = config_of("esync", "esync-server");
  config.epochs = 8;
  set(config, "aggregate", "server");
  expect_resumes_exactly(config);
}

TEST(Resume, OfNbssgdIsExact) {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    for (const std::string commit : {"barrier", "overlap"}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " " << commit);
      TrainConfig config = config_of("nbssgd", "nbssgd");
      config.seed = seed;
      set(config, "commit", commit);
      expect_resumes_exactly(config);
    }
  }
}

/// Expects that each worker resumes after its last step that entered the model: the first line of
/// its log is at most `most` steps later.
void expect_own_positions(const TrainConfig& whole, const std::string& step_of_worker,
                          std::uint64_t most = 1) {
  toy_job(whole).run();
  const TrainConfig cut = cut_off(whole);
  const auto at_start = last_checkpoint(cut).metadata();
  toy_job(cut, /*resume=*/true).run();
  std::set<std::uint64_t> positions;
  for (std::uint32_t rank = 0; rank < whole.workers; ++rank) {
    const std::uint64_t step =
        std::stoull(at_start.at(fmt::format(fmt::runtime(step_of_worker), rank)));
    positions.insert(step);
    std::istringstream log(read_file(RunFolder(cut.run_dir).worker_log(Rank{rank})));
    std::string line;
    ASSERT_TRUE(std::getline(log, line)) << rank;
    const std::uint64_t first = Recorder::Json::parse(line).at("step");
    EXPECT_GT(first, step) << rank;
    EXPECT_LE(first, step + most) << rank;
  }
  EXPECT_GT(positions.size(), 1U) << "unequal devices are at different steps";
}

TEST(Resume, OfAsynchronousWorkersGoesOnWhereEachWas) {
  for (const std::string scheme : {"asgd", "dc-asgd", "backup"}) {
    SCOPED_TRACE(scheme);
    expect_own_positions(config_of(scheme, scheme), "server.0.worker.{}.steps");
  }
}

TEST(Resume, OfLocalStepsOnAServerGoesOnBehindWhatWasHandedOver) {
  for (const std::string scheme : {"downpour", "easgd"}) {
    SCOPED_TRACE(scheme);
    TrainConfig config = config_of(scheme, scheme);
    set(config, "server-learning-rate", 0.01);
    set(config, "local-steps", 4);
    set(config, "push-every", 4);
    set(config, "fetch-every", 4);
    expect_own_positions(config, "server.0.worker.{}.steps", 4);
  }
}

TEST(Resume, OfSharedMemoryGoesOnWhereEachWas) {
  expect_own_positions(config_of("hogwild", "hogwild"), "worker.{}.loop.step");
}

/// The documentation of checkpoints lists this state among what a checkpoint does not hold.
TEST(Resume, OfAsynchronousWorkersKeepsNoOptimizerOfTheirOwn) {
  for (const std::string scheme : {"asgd", "downpour", "easgd", "hogwild"}) {
    SCOPED_TRACE(scheme);
    TrainConfig config = config_of(scheme, "own-" + scheme);
    set(config, "server-learning-rate", 0.01);
    toy_job(config).run();
    for (const std::string& name : last_checkpoint(config).names()) {
      EXPECT_FALSE(name.starts_with("worker.")) << name;
    }
  }
}

/// Expects that a resumed job with a reasonable learning rate reaches the end of the second epoch.
void expect_goes_on(TrainConfig config) {
  config.learning_rate = 0.05;
  config.max_steps.reset();
  config.epochs = 2;
  SimulatedJob resumed = toy_job(config, /*resume=*/true);
  resumed.run();
  EXPECT_GE(resumed.summary().at("epochs"), 2);
  EXPECT_TRUE(resumed.summary().at("lost_model").is_null());
}

TrainConfig overflowing(const std::string& scheme, double rate) {
  TrainConfig config = toy_config(fresh_folder("overflow-" + scheme));
  config.scheme = scheme;
  config.cluster = cluster_of(config.run_dir, unequal);
  config.learning_rate = rate;
  config.max_steps = 20;
  set(config, "eval-every", "1steps");
  set(config, "checkpoint-every", "5steps");
  set(config, "on-nan", "skip");
  return config;
}

TEST(Resume, AfterAnOverflowGoesOnFromTheLastFiniteModel) {
  for (const std::string scheme : {"ssgd", "esync", "asgd", "hogwild"}) {
    SCOPED_TRACE(scheme);
    const TrainConfig config = overflowing(scheme, 3e38);
    SimulatedJob job = toy_job(config);
    job.run();
    ASSERT_THAT(read_file(config.run_dir / "evaluations.jsonl"),
                testing::HasSubstr("\"loss\":null"));
    const Safetensors last = last_checkpoint(config);
    for (const std::string& name : last.names()) {
      EXPECT_THAT(last.values(name),
                  testing::Each(testing::Truly([](float value) { return std::isfinite(value); })))
          << name;
    }
    const auto& lost = job.summary().at("lost_model");
    ASSERT_TRUE(lost.is_object());
    EXPECT_GT(lost.at("round"), 0);
    EXPECT_EQ(lost.at("checkpoint"), latest_checkpoint(config.run_dir / "checkpoints")->string());
    expect_goes_on(config);
  }
}

TEST(Resume, AfterALossTooLargeForItsCounterGoesOn) {
  for (const std::string scheme : {"asgd", "ssp", "backup"}) {
    SCOPED_TRACE(scheme);
    const TrainConfig config = overflowing(scheme, 1e18);
    toy_job(config).run();
    ASSERT_GT(round_of(*latest_checkpoint(config.run_dir / "checkpoints")), 0U);
    ASSERT_EQ(last_checkpoint(config).metadata().at("server.0.loss"), "9000000000000000000");
    expect_goes_on(config);
  }
}

TEST(Resume, FromTheCheckpointBeforeADamagedOneIsExact) {
  const TrainConfig whole = config_of("ssgd", "damaged");
  SimulatedJob uninterrupted = toy_job(whole);
  uninterrupted.run();
  const fs::path newest = *latest_checkpoint(whole.run_dir / "checkpoints");
  std::string bytes = read_file(newest);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  write_file(newest, bytes);
  SimulatedJob resumed = toy_job(whole, /*resume=*/true);
  resumed.run();
  EXPECT_TRUE(fs::exists(newest.string() + ".damaged"));
  EXPECT_TRUE(fs::exists(newest)) << "the resumed run has written it again";
  EXPECT_TRUE(resumed.params() == uninterrupted.params());
}

/// Replaces the value of `counter` in a checkpoint by an impossible one.
void spoil(const fs::path& path, const std::string& counter) {
  const Safetensors whole(read_file(path), path);
  std::vector<std::vector<float>> values;
  std::vector<NamedTensor> tensors;
  for (const std::string& name : whole.names()) {
    tensors.push_back({name, whole.shape(name), values.emplace_back(whole.values(name))});
  }
  Metadata metadata = whole.metadata();
  metadata.at(counter) = "-5";  // read as the bits of a float64, this is NaN
  write_safetensors(path, metadata, tensors);
}

TEST(Resume, RefusesEveryCounterThatIsImpossible) {
  for (const std::string scheme : {"esync", "asgd", "ssgd"}) {
    const TrainConfig config = config_of(scheme, "spoilt-" + scheme);
    toy_job(config).run();
    const fs::path path = *latest_checkpoint(config.run_dir / "checkpoints");
    const std::string good = read_file(path);
    const Safetensors whole(good, path);
    for (const auto& [counter, value] : whole.metadata()) {
      const bool is_counter = value.find_first_not_of("0123456789") == std::string::npos;
      if (value.empty() || !is_counter || counter.ends_with(".loss")) {
        continue;
      }
      SCOPED_TRACE(counter);
      spoil(path, counter);
      SimulatedJob resumed = toy_job(config, /*resume=*/true);
      EXPECT_ANY_THROW(resumed.run());
      ASSERT_TRUE(resumed.failure());
      EXPECT_THROW(std::rethrow_exception(resumed.failure()), DataError);
      write_file(path, good);
    }
  }
}

}  // namespace
}  // namespace syncopate::resume_test
