// Goal:   with every aggregate option a job trains the same model, and all its ranks hold the same
//         bits.
// Method: whole jobs of logistic regression in the simulator, for each value of --aggregate and
//         each scheme with an allreduce, are compared with the same job with a ring, to 1e-5
//         relative, since the order of additions differs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/config_options.hpp"
#include "tests/support/relative_distance.hpp"
#include "tests/support/toy_job.hpp"

namespace syncopate::aggregate_test {
namespace {

using testing::Each;
using testing::Eq;
using testing::StartsWith;

TrainConfig config_of(const std::string& scheme, std::uint32_t workers) {
  TrainConfig config = toy_config(fresh_folder("aggregate-" + scheme));
  config.scheme = scheme;
  config.workers = workers;
  set(config, "local-steps", 3);
  set(config, "commit", "barrier");
  set(config, "overlap", "off");
  set(config, "pacing", "paper");
  config.cluster = cluster_of(config.run_dir,
                              "name = \"even\"\nbatch_samples = 16\n[[devices]]\n"
                              "name = \"any\"\nseconds_per_batch = 1.0\ncount = " +
                                  std::to_string(workers) + "\n");
  return config;
}

/// Runs a job, expects the same bits on all ranks, and returns the parameters.
std::vector<float> trained(TrainConfig config, const std::string& aggregate,
                           const std::string& reported) {
  config.run_dir = fresh_folder("aggregate-" + aggregate);
  set(config, "aggregate", aggregate);
  SimulatedJob job = toy_job(config);
  job.run();
  EXPECT_THAT(job.params(), Each(Eq(job.params()[0])));
  EXPECT_THAT(job.buffers(), Each(Eq(job.buffers()[0])));
  EXPECT_THAT(job.summary().at("aggregate").get<std::string>(), StartsWith(reported));
  return job.params()[0];
}

struct Case {
  std::string scheme;
  std::uint32_t workers = 4;
};

class Aggregate : public testing::TestWithParam<Case> {};

TEST_P(Aggregate, MakesNoDifference) {
  const TrainConfig config = config_of(GetParam().scheme, GetParam().workers);
  const std::vector<float> ring = trained(config, "ring", "ring: ");
  EXPECT_LT(relative_distance(trained(config, "binary-blocks", "binary-blocks: "), ring), 1e-5);
  EXPECT_LT(relative_distance(trained(config, "tree", "tree: "), ring), 1e-5);
  EXPECT_LT(relative_distance(trained(config, "auto", ""), ring), 1e-5);
  if (GetParam().workers == 4) {
    EXPECT_LT(relative_distance(trained(config, "butterfly", "butterfly: "), ring), 1e-5);
  }
  if (GetParam().scheme != "nbssgd") {
    EXPECT_LT(relative_distance(trained(config, "server", "server"), ring), 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, Aggregate,
                         testing::Values(Case{"ssgd", 2}, Case{"ssgd", 4}, Case{"ssgd", 7},
                                         Case{"local-sgd", 4}, Case{"diloco", 4}, Case{"esync", 4},
                                         Case{"nbssgd", 4}, Case{"nbssgd", 5}),
                         [](const auto& info) {
                           std::string name = info.param.scheme;
                           std::erase(name, '-');
                           return name + "_of_" + std::to_string(info.param.workers);
                         });

TEST(AggregateOfASummary, IsNothingWhereNobodyMeets) {
  TrainConfig config = toy_config(fresh_folder("aggregate-none"));
  config.scheme = "asgd";
  SimulatedJob job = toy_job(config);
  job.run();
  EXPECT_TRUE(job.summary().at("aggregate").is_null());
}

}  // namespace
}  // namespace syncopate::aggregate_test
