// Goal:   the toy replicas' gradients are those of their losses.
// Method: central differences of the loss at random parameters (seed printed); the quadratic's
//         closed minimum.

#include "tests/support/toy_replica.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace syncopate {
namespace {

Batch random_batch(Random& random, std::uint32_t features, std::uint32_t classes) {
  Batch batch{.shape = {1, 1, features}, .features = {}, .labels = {}};
  for (int i = 0; i < 5; ++i) {
    batch.labels.push_back(static_cast<std::int64_t>(random.below(classes)));
    for (std::uint32_t j = 0; j < features; ++j) {
      batch.features.push_back(static_cast<float>(random.normal()));
    }
  }
  return batch;
}

double mean_loss(Replica& replica, const Batch& batch) {
  return replica.evaluate(batch).loss_sum / static_cast<double>(batch.samples());
}

void expect_gradient_of_loss(Replica& replica) {
  constexpr std::uint64_t seed = 3;
  constexpr float step = 1e-2F;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  const Batch batch = random_batch(random, 3, 4);
  replica.initialise(seed);
  replica.backward(batch);
  const std::span<float> params = replica.view(ReplicaVector::params);
  for (std::size_t i = 0; i < params.size(); ++i) {
    const float value = params[i];
    params[i] = value + step;
    const double above = mean_loss(replica, batch);
    params[i] = value - step;
    const double below = mean_loss(replica, batch);
    params[i] = value;
    EXPECT_NEAR(replica.view(ReplicaVector::grads)[i], (above - below) / (2 * double{step}), 1e-4)
        << i;
  }
}

TEST(ToyReplica, LogisticGradientIsThatOfItsLoss) {
  LogisticReplica replica({.features = 3, .classes = 4});
  expect_gradient_of_loss(replica);
}

TEST(ToyReplica, QuadraticGradientIsThatOfItsLoss) {
  QuadraticReplica replica({.features = 3, .classes = 4});
  expect_gradient_of_loss(replica);
}

TEST(ToyReplica, QuadraticReachesTheMeanOfTheSamplesInOneStepOfRateOne) {
  QuadraticReplica replica({.features = 1});
  const Batch batch{.shape = {1, 1, 1}, .features = {1, 2, 6}, .labels = {0, 0, 0}};
  replica.set_learning_rate(1);
  replica.backward(batch);
  replica.local_step();
  EXPECT_FLOAT_EQ(replica.view(ReplicaVector::params)[0], 3);
}

TEST(ToyReplica, AnEmptyBatchHasNoGradient) {
  QuadraticReplica replica({.features = 2});
  replica.initialise(1);
  const PassResult result = replica.backward({.shape = {1, 1, 2}, .features = {}, .labels = {}});
  EXPECT_EQ(result.samples, 0U);
  EXPECT_EQ(replica.view(ReplicaVector::grads)[0], 0);
}

}  // namespace
}  // namespace syncopate
