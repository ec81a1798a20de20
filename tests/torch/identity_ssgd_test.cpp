// Goal:   `ssgd` with real libtorch modules computes sequential SGD on the union of the batches,
//         and leaves the same bits on every rank, including BatchNorm's running statistics.
// Method: ranks of the simulator train modules on random batches (seed printed); parameters agree
//         with the sequential run to 1e-5 relative, since that adds in another order.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/random.hpp"
#include "scheme/local.hpp"
#include "scheme/ssgd.hpp"
#include "tests/support/relative_distance.hpp"
#include "tests/support/simulated_group.hpp"
#include "torch/factory.hpp"

namespace syncopate {
namespace {

constexpr std::uint64_t seed = 7;
constexpr SampleShape shape{.channels = 1, .height = 28, .width = 28};
constexpr std::uint32_t classes = 10;

std::unique_ptr<Replica> fresh_replica(const std::string& network,
                                       std::optional<double> clip_norm = {}) {
  torch_backend::set_threads(1);
  auto replica = torch_backend::make_replica({.name = network, .input = shape, .classes = classes},
                                             {.optimizer = Optimizer::momentum,
                                              .learning_rate = 0.05,
                                              .momentum = 0.9,
                                              .clip_norm = clip_norm},
                                             "cpu");
  replica->initialise(seed);
  return replica;
}

void append_samples(Batch& batch, std::uint64_t step, std::uint32_t rank, std::uint32_t samples) {
  Random random = Random(seed).fork("batch", step * 100 + rank);
  for (std::uint32_t i = 0; i < samples; ++i) {
    batch.labels.push_back(static_cast<std::int64_t>(random.below(classes)));
    for (std::size_t j = 0; j < shape.values(); ++j) {
      batch.features.push_back(static_cast<float>(random.normal()));
    }
  }
}

void one_step(Scheme& scheme, Replica& replica, const Batch& batch) {
  const auto samples = static_cast<std::uint32_t>(batch.samples());
  const PassResult pass = replica.backward(batch, scheme.before_backward(replica, samples));
  scheme.after_backward(replica, {.samples = pass.samples, .loss_sum = pass.loss_sum});
}

std::vector<float> copy_of(Replica& replica, ReplicaVector which) {
  const auto values = replica.view(which);
  return {values.begin(), values.end()};
}

using Sizes = std::vector<std::uint32_t>;

std::vector<float> sequential(const std::string& network, const Sizes& sizes, int steps,
                              std::optional<double> clip_norm = {}) {
  return on_every_rank<std::vector<float>>(1, [&](Group& group) {
    const auto replica = fresh_replica(network, clip_norm);
    Local scheme(group.world(), Round{});
    for (int step = 0; step < steps; ++step) {
      Batch batch{.shape = shape, .features = {}, .labels = {}};
      for (std::uint32_t rank = 0; rank < sizes.size(); ++rank) {
        append_samples(batch, static_cast<std::uint64_t>(step), rank, sizes[rank]);
      }
      one_step(scheme, *replica, batch);
    }
    return copy_of(*replica, ReplicaVector::params);
  })[0];
}

std::vector<std::vector<float>> synchronous(const std::string& network, const Sizes& sizes,
                                            int steps, ReplicaVector which,
                                            std::optional<BucketReducer::Options> buckets = {},
                                            std::optional<double> clip_norm = {}) {
  const auto ranks = static_cast<std::uint32_t>(sizes.size());
  return on_every_rank<std::vector<float>>(ranks, [&](Group& group) {
    const auto replica = fresh_replica(network, clip_norm);
    Ssgd scheme(group, {.averaging = {.buckets = buckets}});
    const std::uint32_t rank = group.rank().value;
    for (int step = 0; step < steps; ++step) {
      Batch batch{.shape = shape, .features = {}, .labels = {}};
      append_samples(batch, static_cast<std::uint64_t>(step), rank, sizes[rank]);
      one_step(scheme, *replica, batch);
    }
    return copy_of(*replica, which);
  });
}

TEST(TorchSsgd, IsSequentialSgdOnTheUnionOfEqualBatches) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const Sizes sizes{8, 8, 8};
  EXPECT_LT(relative_distance(synchronous("lenet5", sizes, 5, ReplicaVector::params)[0],
                              sequential("lenet5", sizes, 5)),
            1e-5);
}

TEST(TorchSsgd, IsSequentialSgdOnTheUnionOfUnequalBatches) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const Sizes sizes{16, 3, 1};
  EXPECT_LT(relative_distance(synchronous("mlp", sizes, 10, ReplicaVector::params)[0],
                              sequential("mlp", sizes, 10)),
            1e-5);
}

/// The norms of the gradients are between 0.6 and 2 here, so that some steps are clipped.
TEST(TorchSsgd, ClipsTheMeanGradientOfAllWorkers) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const Sizes sizes{16, 3, 1};
  const auto clipped = sequential("mlp", sizes, 10, 0.8);
  for (const bool overlap : {false, true}) {
    const auto ranks =
        synchronous("mlp", sizes, 10, ReplicaVector::params, {{.overlap = overlap}}, 0.8);
    EXPECT_LT(relative_distance(ranks[0], clipped), 1e-5);
  }
  EXPECT_GT(relative_distance(sequential("mlp", sizes, 10), clipped), 1e-2);
}

TEST(TorchSsgd, HasTheSameBitsWithOverlap) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  for (const ReplicaVector which : {ReplicaVector::params, ReplicaVector::buffers}) {
    const auto with = synchronous("resnet18-v1", {3, 2, 2}, 3, which, {{.overlap = true}});
    const auto without = synchronous("resnet18-v1", {3, 2, 2}, 3, which, {{.overlap = false}});
    for (std::size_t rank = 0; rank < with.size(); ++rank) {
      EXPECT_EQ(
          std::memcmp(with[rank].data(), without[rank].data(), with[rank].size() * sizeof(float)),
          0);
    }
  }
}

TEST(TorchSsgd, LeavesTheSameBitsOnEveryRankBuffersIncluded) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  for (const ReplicaVector which : {ReplicaVector::params, ReplicaVector::buffers}) {
    const auto ranks = synchronous("resnet18-v1", {3, 2}, 2, which);
    ASSERT_FALSE(ranks[0].empty());
    EXPECT_EQ(std::memcmp(ranks[0].data(), ranks[1].data(), ranks[0].size() * sizeof(float)), 0);
  }
}

}  // namespace
}  // namespace syncopate
