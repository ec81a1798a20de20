// Goal:   a job with compression reaches the loss and accuracy of the same job without compression,
//         in every scheme with an allreduce or with pushes to a server. With an allreduce all ranks
//         hold the same bits. The job reports how much compression saved and lost.
// Method: whole jobs of logistic regression, a convex problem, in the simulator, for each scheme
//         and codec, are compared with the same job without compression.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/config_options.hpp"
#include "tests/support/relative_distance.hpp"
#include "tests/support/toy_job.hpp"

namespace syncopate::compression_test {
namespace {

using testing::Each;
using testing::Eq;
using testing::StartsWith;

TrainConfig config_of(const std::string& scheme, const std::string& compress,
                      const std::string& optimizer = "sgd") {
  std::string folder = "compression-" + scheme + "-" + compress + "-" + optimizer;
  std::replace(folder.begin(), folder.end(), ':', '-');
  TrainConfig config = toy_config(fresh_folder(folder));
  config.scheme = scheme;
  set(config, "compress", compress);
  config.epochs = 30;
  // The rate with momentum is too high for an error feedback that is applied before the momentum.
  config.learning_rate = optimizer == "sgd" ? 0.01 : 0.065;
  set(config, "optimizer", optimizer);
  set(config, "outer-momentum", 0.5);
  set(config, "server-optimizer", "sgd");  // read by downpour only
  set(config, "server-learning-rate", *config.learning_rate);
  set(config, "local-steps", 3);
  config.cluster = cluster_of(config.run_dir,
                              "name = \"even\"\nbatch_samples = 16\n[[devices]]\n"
                              "name = \"any\"\nseconds_per_batch = 1.0\ncount = 3\n");
  return config;
}

struct Case {
  std::string scheme;
  std::string optimizer = "sgd";
  std::vector<std::string> codecs = {"bf16", "fp16", "int8", "onebit", "topk:0.1"};
};

class Compressed : public testing::TestWithParam<Case> {
 protected:
  static void train(SimulatedJob& job) {
    job.run();
    ASSERT_EQ(job.failure(), nullptr);
  }
  static TrainConfig config(const std::string& compress) {
    return config_of(GetParam().scheme, compress, GetParam().optimizer);
  }
};

double last_loss(const SimulatedJob& job) {
  return job.summary().at("evaluations").back().at("loss").get<double>();
}

void expect_savings(const SimulatedJob& job, const std::string& compress) {
  EXPECT_EQ(job.summary().at("compress"), compress);
  for (const auto& worker : job.summary().at("workers")) {
    EXPECT_GT(worker.at("compression").at("ratio"), 1.5);
    EXPECT_GT(worker.at("compression").at("relative_error"), 0);
    EXPECT_LT(worker.at("compression").at("relative_error"), 1);
  }
}

TEST_P(Compressed, ComesToTheUncompressedLoss) {
  const std::string& scheme = GetParam().scheme;
  SimulatedJob plain = toy_job(config("none"));
  train(plain);
  for (const std::string& compress : GetParam().codecs) {
    SCOPED_TRACE(compress);
    SimulatedJob job = toy_job(config(compress));
    train(job);
    EXPECT_LT(last_loss(job), 1.05 * last_loss(plain));
    EXPECT_GE(job.summary().at("accuracy").get<double>(),
              plain.summary().at("accuracy").get<double>() - 0.02);
    if (scheme == "ssgd" || scheme == "local-sgd") {
      EXPECT_THAT(job.params(), Each(Eq(job.params()[0])));
      EXPECT_NE(job.params()[0], plain.params()[0]);
    }
    if (!has_server(config("none"))) {
      EXPECT_THAT(job.summary().at("aggregate").get<std::string>(), StartsWith(compress));
    }
    expect_savings(job, compress);
  }
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::string scheme : {"ssgd", "local-sgd", "diloco", "esync", "nbssgd", "asgd",
                                   "dc-asgd", "ssp", "backup", "downpour"}) {
    cases.push_back({scheme});
  }
  for (const std::string scheme : {"ssgd", "nbssgd"}) {
    cases.push_back({scheme, "momentum", {"int8", "onebit", "topk:0.1"}});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Schemes, Compressed, testing::ValuesIn(all_cases()), [](const auto& info) {
  std::string name = info.param.scheme + "_" + info.param.optimizer;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(CompressedJob, RepeatsItselfToTheLastBit) {
  const auto trained = [] {
    SimulatedJob job = toy_job(config_of("ssgd", "topk:0.05"));
    job.run();
    return job.params()[0];
  };
  EXPECT_EQ(trained(), trained());
}

}  // namespace
}  // namespace syncopate::compression_test
