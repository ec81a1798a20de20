// Goal:   a network is one file and one line: the options and the replica know a network that is
//         added in this way.
// Method: the two sources that read the list of networks are compiled with an additional line
//         (tests/extension/CMakeLists.txt). A replica of the network trains on one batch.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/config_file.hpp"
#include "tests/support/config_options.hpp"
#include "torch/factory.hpp"

namespace syncopate {
namespace {

TEST(ToyNetwork, IsListed) {
  EXPECT_EQ(network_names().back(), "toy");
  const auto choices = find_field("network")->choices();
  EXPECT_EQ(choices.back(), "toy");
}

TEST(ToyNetwork, IsTakenFromTheCommandLineAndTheFile) {
  TrainConfig config;
  set(config, "network", "toy");
  EXPECT_EQ(config.network->name, "toy");
  EXPECT_FALSE(config.network->has_batch_norm);
  EXPECT_THAT(to_toml(config), testing::HasSubstr("network = 'toy'"));
  EXPECT_EQ(parse_config(to_toml(config), "test.toml", {}), config);
}

TEST(ToyNetwork, HasItsFigures) {
  const auto facts =
      torch_backend::network_facts({.name = "toy", .input = {1, 2, 2}, .classes = 3});
  EXPECT_EQ(facts.summary, "one linear layer");
  EXPECT_EQ(facts.parameters, 4U * 3 + 3);
  EXPECT_EQ(facts.multiply_adds, 4U * 3);
}

TEST(ToyNetwork, Trains) {
  const auto replica =
      torch_backend::make_replica({.name = "toy", .input = {1, 2, 2}, .classes = 2},
                                  {.optimizer = Optimizer::sgd, .learning_rate = 0.5}, "cpu");
  replica->initialise(1);
  const Batch batch{.shape = {1, 2, 2}, .features = {1, 0, 0, 1, 0, 1, 1, 0}, .labels = {0, 1}};
  const double before = replica->evaluate(batch).loss_sum;
  for (int step = 0; step < 20; ++step) {
    replica->backward(batch);
    replica->local_step();
  }
  EXPECT_LT(replica->evaluate(batch).loss_sum, 0.5 * before);
}

}  // namespace
}  // namespace syncopate
