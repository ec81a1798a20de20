// Goal:   a program that trains by a loop of its own gets the same parameters as the same training
//         by the built-in loop, and synchronized workers get the same parameters.
// Method: a small classifier with fixed initial parameters; programs are threads, the built-in loop
//         runs in the simulator.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/torch/loops/loop_jobs.hpp"

namespace syncopate::test {
namespace {

using Options = std::map<std::string, std::string>;

/// Trains by loops and returns the parameters of all workers. Expects that all end without an
/// error.
std::vector<std::vector<float>> train_by_loops(const std::string& scheme, std::uint32_t workers,
                                               Options options) {
  options["run-dir"] = run_folder();
  ThreadedPrograms programs(workers);
  std::vector<std::vector<float>> params(workers);
  const std::vector<std::string> errors = programs.run([&](const JobEntry& entry) {
    params[entry.rank] = train_by_loop({.scheme = scheme, .options = options, .entry = entry},
                                       batch_size * workers, epochs);
  });
  EXPECT_EQ(errors, std::vector<std::string>(workers));
  EXPECT_EQ(programs.failure(), "");
  return params;
}

void expect_near(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-5) << i;
  }
}

void expect_same_training(const std::string& scheme, std::uint32_t workers,
                          const Options& options = {}) {
  const std::vector<float> expected = train_by_job(scheme, workers, options);
  for (const std::vector<float>& found : train_by_loops(scheme, workers, options)) {
    expect_near(found, expected);
  }
}

TEST(SameTrainingTest, OfOneWorkerWithSsgd) {
  expect_same_training("ssgd", 1);
}

/// A job ends with a whole round, which may have more steps than the loop. So this test has only
/// one worker, which trains by sequential SGD.
TEST(SameTrainingTest, OfOneWorkerWithEsync) {
  const std::vector<float> expected = train_by_job("ssgd", 1, {});
  expect_near(train_by_loops("esync", 1, {}).front(), expected);
  expect_near(train_by_loops("esync", 1, {{"pacing", "paper"}, {"overlap", "off"}}).front(),
              expected);
}

TEST(SameTrainingTest, OfOneWorkerWithNbssgd) {
  expect_same_training("nbssgd", 1, {{"mini-batches", "4"}, {"commit", "barrier"}});
}

TEST(SameTrainingTest, OfOneWorkerWithAsgd) {
  expect_same_training("asgd", 1);
}

TEST(SameTrainingTest, OfTwoWorkersWithSsgd) {
  expect_same_training("ssgd", 2);
}

TEST(SameTrainingTest, OfTwoWorkersWithLocalSgd) {
  expect_same_training("local-sgd", 2, {{"local-steps", "4"}});
}

TEST(SameTrainingTest, OfAProcessByItself) {
  expect_near(train_by_loop({}, batch_size, epochs), train_by_job("ssgd", 1, {}));
}

/// Each scheme runs with its defaults for local steps, servers, shared memory and pacing.
TEST(EverySchemeTest, TrainsByLoopsOfTwoPrograms) {
  const std::vector<float> before = values_of(Linear());
  for (const std::string& scheme : distributed_schemes()) {
    SCOPED_TRACE(scheme);
    for (const auto& params : train_by_loops(scheme, 2, {})) {
      EXPECT_NE(params, before);
      for (const float value : params) {
        EXPECT_TRUE(std::isfinite(value));
      }
    }
  }
}

}  // namespace
}  // namespace syncopate::test
