// Goal:   a process that joins a job keeps the options of its own machine, and refuses a job that
//         contradicts its other options.
// Method: configurations, and options as a user types them, are passed to `config_of_joiner`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.hpp"
#include "job/launch/job_request.hpp"
#include "spec/networks.hpp"

namespace syncopate {
namespace {

TrainConfig job() {
  TrainConfig config;
  config.network = &network_named("mlp");
  config.learning_rate = 0.05;
  config.data_dir = "/data/there";
  config.cluster = "/clusters/mixed.toml";
  return config;
}

std::string objection_to(const GivenOptions& given) {
  try {
    config_of_joiner(job(), given, "the job at there");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ConfigOfJoiner, IsTheJobsWhereNothingIsGiven) {
  EXPECT_EQ(config_of_joiner(job(), {}, ""), job());
}

TEST(ConfigOfJoiner, KeepsWhatIsTheMachinesOwn) {
  const TrainConfig config = config_of_joiner(
      job(),
      {{"data-dir", "/data/here"}, {"run-dir", "mine"}, {"device", "cuda:1"}, {"threads", "4"}},
      "");
  TrainConfig expected = job();
  expected.data_dir = "/data/here";
  expected.run_dir = "mine";
  expected.device = "cuda:1";
  expected.threads = 4;
  EXPECT_EQ(config, expected);
}

TEST(ConfigOfJoiner, AcceptsWhatTheJobIs) {
  EXPECT_EQ(
      objection_to(
          {{"network", "mlp"}, {"learning-rate", "5e-2"}, {"cluster", "/clusters/./mixed.toml"}}),
      "accepted");
}

TEST(ConfigOfJoiner, RefusesAnythingElseByNameWithBothValues) {
  EXPECT_EQ(objection_to({{"network", "resnet18-v1"}}),
            "--network is resnet18-v1 here, but mlp in the job at there");
  EXPECT_EQ(objection_to({{"target-accuracy", "0.9"}}),
            "--target-accuracy is 0.9 here, but not set in the job at there");
  EXPECT_EQ(objection_to({{"workers", "none"}}).substr(0, 10), "--workers:");
}

TEST(ConfigOfJoiner, NamesWhatAJobLacks) {
  const auto objection = [](const TrainConfig& config) -> std::string {
    try {
      check_described(config, "the job at there");
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  TrainConfig config = job();
  config.weights = Weights::samples;
  EXPECT_EQ(objection(config), "accepted");
  config.learning_rate.reset();
  EXPECT_THAT(objection(config), testing::HasSubstr("the job at there lacks learning_rate"));
  config = job();
  EXPECT_THAT(objection(config), testing::HasSubstr("the job at there lacks weights"));
}

}  // namespace
}  // namespace syncopate
