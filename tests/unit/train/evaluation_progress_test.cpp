// Goal:   a test and the statistics before it show progress after each of their batches, so that an
//         evaluator on a slow device is not taken for one that hangs.
// Method: a toy replica over a few thousand samples; the batches are counted by hand.

#include <gtest/gtest.h>

#include <cstddef>

#include "tests/support/toy_replica.hpp"
#include "train/member_roles.hpp"

namespace syncopate {
namespace {

Dataset dataset_of(std::size_t train, std::size_t test) {
  Dataset dataset;
  dataset.name = "grey";
  dataset.classes = 2;
  for (auto [set, samples] : {std::pair{&dataset.train, train}, std::pair{&dataset.test, test}}) {
    set->shape = {1, 1, 1};
    set->pixels.assign(samples, 128);
    set->labels.assign(samples, 1);
  }
  return dataset;
}

TEST(EvaluationProgress, ComesAfterEachBatch) {
  LogisticReplica replica({.features = 1, .classes = 2});
  std::size_t batches = 0;
  const auto progressed = [&batches] { ++batches; };
  recompute_statistics(replica, dataset_of(1700, 0), /*seed=*/1, progressed);
  EXPECT_EQ(batches, 3U) << "whole batches of 500 samples";
  batches = 0;
  recompute_statistics(replica, dataset_of(9000, 0), /*seed=*/1, progressed);
  EXPECT_EQ(batches, 10U) << "at most";
  batches = 0;
  recompute_statistics(replica, dataset_of(30, 0), /*seed=*/1, progressed);
  EXPECT_EQ(batches, 1U);
  batches = 0;
  test_model(replica, dataset_of(0, 1700), progressed);
  EXPECT_EQ(batches, 4U);
}

}  // namespace
}  // namespace syncopate
