// Goal:   dropout drops each value with its probability, and the masks of a replica are
//         reproducible: they depend only on its seed and its number of passes.
// Method: single layers; replicas of a network with dropout that train one after another, or
//         alternately.

#include "torch/seeded_dropout.hpp"

#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>

#include <cmath>

#include "tests/torch/examples.hpp"

namespace syncopate::torch_backend {
namespace {

SeededDropout dropout_with(double p, std::uint64_t seed) {
  SeededDropout layer(p);
  seed_dropout(*layer, seed);
  return layer;
}

TEST(SeededDropoutLayer, KeepsTheMeanAndDropsWithItsProbability) {
  const torch::Tensor ones = torch::ones({100, 200});
  SeededDropout layer = dropout_with(0.2, 1);
  const torch::Tensor some = layer(ones);
  const double dropped = some.eq(0).sum().item<double>();
  EXPECT_NEAR(dropped / 20000, 0.2, 4 * std::sqrt(0.2 * 0.8 / 20000));
  EXPECT_TRUE(some.eq(0).logical_or(some.eq(1.25)).all().item<bool>());
  layer->eval();
  EXPECT_TRUE(layer(ones).equal(ones));
}

TEST(SeededDropoutLayer, HasAnotherMaskForEachPassSeedAndLayer) {
  const torch::Tensor ones = torch::ones({10, 100});
  SeededDropout first = dropout_with(0.5, 1);
  SeededDropout second = dropout_with(0.5, 1);
  const torch::Tensor mask = first(ones);
  EXPECT_TRUE(mask.equal(second(ones)));
  EXPECT_FALSE(mask.equal(first(ones)));
  EXPECT_FALSE(mask.equal(dropout_with(0.5, 2)(ones)));
  SeededDropout one(0.5);
  SeededDropout two(0.5);
  torch::nn::Sequential both(one, two);
  seed_dropout(*both, 1);
  EXPECT_FALSE(one(ones).equal(two(ones)));
}

TEST(SeededDropoutLayer, LeavesTheCommonGeneratorAlone) {
  SeededDropout layer = dropout_with(0.5, 1);
  torch::manual_seed(5);
  const torch::Tensor draws = torch::rand({4});
  torch::manual_seed(5);
  layer(torch::ones({4}));
  EXPECT_TRUE(draws.equal(torch::rand({4})));
}

struct TinyWithDropout : torch::nn::Module {
  TinyWithDropout()
      : dropout(register_module("dropout", SeededDropout(0.5))),
        fc(register_module("fc", torch::nn::Linear(36, tiny_classes))) {
    seed_dropout(*dropout, 3);
  }

  torch::Tensor forward(const torch::Tensor& x) { return fc(dropout(x.flatten(1))); }

  SeededDropout dropout;
  torch::nn::Linear fc;
};

TEST(SeededDropoutLayer, RepeatsInAReplicaThatIsDrawnAgain) {
  Watched<TinyWithDropout> one({});
  Watched<TinyWithDropout> other({});
  one.replica.initialise(1);
  other.replica.initialise(1);
  const Batch batch = tiny_batch(1);
  std::vector<double> losses;
  for (int pass = 0; pass < 3; ++pass) {
    losses.push_back(one.replica.backward(batch).loss_sum);
    EXPECT_EQ(other.replica.backward(batch).loss_sum, losses.back());
  }
  EXPECT_NE(losses[0], losses[1]);
  one.replica.initialise(1);
  EXPECT_EQ(one.replica.backward(batch).loss_sum, losses[0]);
  EXPECT_TRUE(one.replica.view(ReplicaVector::buffers).empty()) << "its count is no statistic";
}

}  // namespace
}  // namespace syncopate::torch_backend
