// Goal:   `ssgd` computes sequential SGD on the union of the workers' batches, for equal and for
//         unequal batches, and leaves the same bits on every rank.
// Method: logistic regression with momentum, 30 steps of random batches (seed printed), in the
//         simulator, is compared with one replica that trains on the concatenated batches, to 1e-5
//         relative, since the order of additions differs.

#include "scheme/ssgd.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/random.hpp"
#include "scheme/averaging.hpp"
#include "scheme/local.hpp"
#include "tests/support/relative_distance.hpp"
#include "tests/support/simulated_group.hpp"
#include "tests/support/toy_replica.hpp"

namespace syncopate::ssgd_test {
namespace {

constexpr ToyReplica::Options toy{.features = 6, .classes = 5, .momentum = 0.9};
constexpr std::uint64_t seed = 42;
constexpr std::uint64_t steps = 30;

struct Case {
  std::string name;
  std::vector<std::uint32_t> batch_sizes;  ///< by rank
};

Batch batch_of(std::uint64_t step, std::uint32_t rank, std::uint32_t samples) {
  Random random = Random(seed).fork("batch", step * 100 + rank);
  Batch batch{.shape = {1, 2, 3}, .features = {}, .labels = {}};
  for (std::uint32_t i = 0; i < samples; ++i) {
    batch.labels.push_back(static_cast<std::int64_t>(random.below(toy.classes)));
    for (std::size_t j = 0; j < toy.features; ++j) {
      batch.features.push_back(static_cast<float>(random.normal()));
    }
  }
  return batch;
}

void append(Batch& all, const Batch& batch) {
  all.features.insert(all.features.end(), batch.features.begin(), batch.features.end());
  all.labels.insert(all.labels.end(), batch.labels.begin(), batch.labels.end());
}

LogisticReplica fresh_replica() {
  LogisticReplica replica(toy);
  replica.initialise(seed);
  return replica;
}

void step(Scheme& scheme, Replica& replica, const Batch& batch) {
  const PassResult pass = replica.backward(batch);
  scheme.after_backward(replica, {.samples = pass.samples, .loss_sum = pass.loss_sum});
}

std::vector<float> params_of(Replica& replica) {
  const auto params = replica.view(ReplicaVector::params);
  return {params.begin(), params.end()};
}

std::vector<float> sequential(const Case& example) {
  sim::Simulation simulation({.seed = 1});
  std::vector<float> params;
  simulation.add_node("alone", [&](World& world) {
    LogisticReplica replica = fresh_replica();
    Local scheme(world, Round{});
    for (std::uint64_t i = 0; i < steps; ++i) {
      Batch all{.shape = {1, 2, 3}, .features = {}, .labels = {}};
      for (std::uint32_t rank = 0; rank < example.batch_sizes.size(); ++rank) {
        append(all, batch_of(i, rank, example.batch_sizes[rank]));
      }
      step(scheme, replica, all);
    }
    params = params_of(replica);
  });
  simulation.run();
  return params;
}

std::vector<std::vector<float>> synchronous(const Case& example, Weights weights) {
  const auto size = static_cast<std::uint32_t>(example.batch_sizes.size());
  return on_every_rank<std::vector<float>>(size, [&](Group& group) {
    LogisticReplica replica = fresh_replica();
    Ssgd scheme(group, {.averaging = {.weights = weights}});
    const std::uint32_t rank = group.rank().value;
    for (std::uint64_t i = 0; i < steps; ++i) {
      step(scheme, replica, batch_of(i, rank, example.batch_sizes[rank]));
    }
    return params_of(replica);
  });
}

class SsgdIdentity : public testing::TestWithParam<Case> {};

TEST_P(SsgdIdentity, IsSequentialSgdOnTheUnion) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const auto workers = synchronous(GetParam(), Weights::samples);
  EXPECT_LT(relative_distance(workers[0], sequential(GetParam())), 1e-5);
}

TEST_P(SsgdIdentity, LeavesTheSameBitsOnEveryRank) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const auto workers = synchronous(GetParam(), Weights::samples);
  for (const auto& params : workers) {
    EXPECT_EQ(std::memcmp(params.data(), workers[0].data(), params.size() * sizeof(float)), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Batches, SsgdIdentity,
                         testing::Values(Case{"one", {16}}, Case{"two_equal", {8, 8}},
                                         Case{"four_equal", {8, 8, 8, 8}},
                                         Case{"unequal", {32, 8, 3, 1}},
                                         Case{"one_idle", {8, 0, 8}}),
                         [](const auto& info) { return info.param.name; });

TEST(SsgdWeights, UniformIsAnotherMeanWhereBatchesAreUnequal) {
  const Case unequal{"unequal", {32, 4}};
  const auto by_samples = synchronous(unequal, Weights::samples);
  const auto uniform = synchronous(unequal, Weights::uniform);
  EXPECT_GT(relative_distance(uniform[0], by_samples[0]), 1e-3);
  const Case equal{"equal", {8, 8}};
  EXPECT_LT(relative_distance(synchronous(equal, Weights::uniform)[0],
                              synchronous(equal, Weights::samples)[0]),
            1e-6);
}

TEST(SsgdBuffers, AreAveragedBySamples) {
  const auto means = on_every_rank<float>(2, [](Group& group) {
    QuadraticReplica replica({.features = 1});
    Ssgd scheme(group, {});
    // One sample of 10 on rank 0, three of 20 on rank 1: feature_mean becomes 1 and 5.42.
    const bool first = group.rank() == Rank{0};
    const Batch batch{.shape = {1, 1, 1},
                      .features = std::vector<float>(first ? 1 : 3, first ? 10.0F : 20.0F),
                      .labels = std::vector<std::int64_t>(first ? 1 : 3, 0)};
    step(scheme, replica, batch);
    return replica.view(ReplicaVector::buffers)[0];
  });
  EXPECT_FLOAT_EQ(means[0], (1.0F * 1 + 3 * 5.42F) / 4);
  EXPECT_EQ(means[0], means[1]);
}

// The mean of equal values must be that value, although the rounded shares do not sum to exactly 1.
TEST(SsgdBuffers, StayTheSameToTheBitWhereNobodyChangesThem) {
  constexpr std::uint64_t rounds = 300;
  using Rounds = std::vector<std::vector<float>>;
  const auto buffers_of = on_every_rank<Rounds>(3, [](Group& group) {
    Random random = Random(seed).fork("buffers");
    std::vector<float> constant{-std::numeric_limits<float>::infinity(), 0};
    while (constant.size() < 40) {
      constant.push_back(static_cast<float>(random.normal()));
    }
    const std::vector<float> initial = constant;
    Averaging averaging(group, {.buffers = initial});
    Rounds results{initial};
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      std::vector<float> model(1);
      constant.back() += static_cast<float>(group.rank().value + 1);  // only this one changes
      const std::uint64_t samples = 1 + (round * 7 + group.rank().value * 13) % 64;
      averaging.synchronize(Round{round}, {.samples = samples},
                            {.model = model, .buffers = constant});
      results.push_back(constant);
    }
    return results;
  });
  for (const Rounds& results : buffers_of) {
    EXPECT_EQ(results, buffers_of[0]);
    std::vector<float> first = results.front();
    std::vector<float> last = results.back();
    EXPECT_GT(last.back(), first.back() + 300);
    first.pop_back();
    last.pop_back();
    EXPECT_EQ(last, first);
  }
}

}  // namespace
}  // namespace syncopate::ssgd_test
