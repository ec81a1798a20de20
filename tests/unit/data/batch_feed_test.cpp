// Goal: each sample is in exactly one batch per epoch, all workers take the same number of steps,
//       and the feed can resume at any position.
// Method: random sizes, shares and batch sizes, with the batches of all ranks over several epochs;
//       closed values for lengths and positions.

#include "data/batch_feed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "base/errors.hpp"
#include "base/random.hpp"

namespace syncopate {
namespace {

using Samples = std::vector<std::uint32_t>;

Partition partition_of(std::size_t samples, std::vector<double> shares, std::uint64_t seed = 1) {
  return {std::vector<Label>(samples, 0), {seed, Split{}, std::move(shares), {}}};
}

Samples copy(std::span<const std::uint32_t> samples) {
  return {samples.begin(), samples.end()};
}

/// Returns the samples of all batches of a worker in an epoch, in order.
Samples samples_of(BatchFeed& feed, std::uint64_t epoch, std::uint32_t batch_size) {
  Samples samples;
  for (std::uint64_t step = 0; step < feed.steps_per_epoch(); ++step) {
    const auto batch = feed.batch({Epoch{epoch}, step});
    EXPECT_LE(batch.size(), batch_size);
    samples.insert(samples.end(), batch.begin(), batch.end());
  }
  return samples;
}

TEST(BatchFeed, TrainsOnEverySampleOncePerEpoch) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const auto workers = static_cast<std::uint32_t>(1 + random.below(8));
    const std::size_t samples = workers + random.below(1'000);
    std::vector<double> shares(workers);
    std::vector<std::uint32_t> batch_sizes(workers);
    for (std::uint32_t rank = 0; rank < workers; ++rank) {
      shares[rank] = 0.1 + random.uniform();
      batch_sizes[rank] = static_cast<std::uint32_t>(1 + random.below(64));
    }
    const Partition partition = partition_of(samples, shares, seed);
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      Samples seen;
      for (std::uint32_t rank = 0; rank < workers; ++rank) {
        BatchFeed feed(
            partition, Rank{rank}, batch_sizes,
            epoch == 0 ? BatchFeed::LastBatches::whole : BatchFeed::LastBatches::divided);
        std::ranges::copy(samples_of(feed, epoch, batch_sizes[rank]), std::back_inserter(seen));
      }
      std::ranges::sort(seen);
      Samples expected(samples);
      std::iota(expected.begin(), expected.end(), 0U);
      ASSERT_EQ(seen, expected);
    }
  }
}

TEST(BatchFeed, LastsAsLongAsTheWorkerWithMostSteps) {
  // Parts of 40, 40 and 20 samples take 10, 4 and 5 steps.
  const Partition partition = partition_of(100, {2, 2, 1});
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(BatchFeed(partition, Rank{rank}, {4, 10, 4}).steps_per_epoch(), 10U);
  }
}

using Sizes = std::vector<std::size_t>;

Sizes sizes_of(BatchFeed feed) {
  Sizes sizes;
  for (std::uint64_t step = 0; step < feed.steps_per_epoch(); ++step) {
    sizes.push_back(feed.batch({Epoch{0}, step}).size());
  }
  return sizes;
}

constexpr auto divided = BatchFeed::LastBatches::divided;

TEST(BatchFeed, EndsAPartWithAPartialBatchAndThenEmptyOnes) {
  const BatchFeed feed(partition_of(50, {1, 1}), Rank{1}, {5, 10});
  EXPECT_EQ(sizes_of(feed), (Sizes{10, 10, 5, 0, 0}));
}

TEST(BatchFeed, DividesLastBatchesOfAWorkerThatNeedsFewerSteps) {
  const Partition halves = partition_of(65, {1, 1});  // 33 samples and 32
  EXPECT_EQ(sizes_of({halves, Rank{0}, {16, 16}, divided}), (Sizes{16, 16, 1}));
  EXPECT_EQ(sizes_of({halves, Rank{1}, {16, 16}, divided}), (Sizes{16, 8, 8}));
  const Partition uneven = partition_of(96, {2, 1});  // 8 steps of 8 samples, and 4
  EXPECT_EQ(sizes_of({uneven, Rank{1}, {8, 8}, divided}), Sizes(8, 4));
  const Partition quarters = partition_of(80, {5, 3});  // 50 samples and 30
  EXPECT_EQ(sizes_of({quarters, Rank{1}, {10, 10}, divided}), (Sizes{10, 5, 5, 5, 5}));
}

TEST(BatchFeed, HasEmptyBatchesOnlyWhereAPartHasFewerSamplesThanSteps) {
  const Partition uneven = partition_of(12, {5, 1});  // 10 samples and 2
  EXPECT_EQ(sizes_of({uneven, Rank{1}, {2, 2}, divided}), (Sizes{0, 0, 1, 0, 1}));
}

TEST(BatchFeed, HasNoEmptyBatchWherePartsSuffice) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const auto workers = static_cast<std::uint32_t>(2 + random.below(6));
    const Partition partition =
        partition_of(1 + workers + random.below(1'000), std::vector<double>(workers, 1), seed);
    const std::vector<std::uint32_t> batch_sizes(workers,
                                                 static_cast<std::uint32_t>(2 + random.below(32)));
    for (std::uint32_t rank = 0; rank < workers; ++rank) {
      const BatchFeed feed(partition, Rank{rank}, batch_sizes, divided);
      if (partition.size(Rank{rank}) >= feed.steps_per_epoch()) {
        EXPECT_THAT(sizes_of(feed), testing::Each(testing::Gt(0U)));
      }
    }
  }
}

/// Returns a partition of classes of 60, 30 and 30 samples, one class per worker.
Partition kept_parts() {
  std::vector<Label> labels(120, 0);
  std::fill(labels.begin() + 60, labels.begin() + 90, Label{1});
  std::fill(labels.begin() + 90, labels.end(), Label{2});
  return {labels, {4, Split{.kind = Split::Kind::by_class}, {1, 1, 1}, {}}};
}

TEST(BatchFeed, PassesOverAKeptPartAsOftenAsItsStepsAllow) {
  const Partition partition = kept_parts();
  BatchFeed small(partition, Rank{1}, {10, 10, 10});
  BatchFeed large(partition, Rank{0}, {10, 10, 10});
  ASSERT_EQ(small.steps_per_epoch(), 4U);  // 120 samples in steps of 30
  ASSERT_EQ(large.steps_per_epoch(), 4U);
  for (std::uint64_t pass = 0; pass < 4; ++pass) {
    Samples seen;
    for (std::uint64_t step = 3 * pass; step < 3 * (pass + 1); ++step) {
      const auto batch = small.batch(small.position_after(Step{step}));
      EXPECT_EQ(batch.size(), 10U);
      seen.insert(seen.end(), batch.begin(), batch.end());
    }
    EXPECT_EQ(seen, partition.part(Rank{1}, Epoch{pass}));
  }
  Samples seen;
  for (std::uint64_t step = 0; step < 6; ++step) {
    const auto batch = large.batch(large.position_after(Step{step}));
    seen.insert(seen.end(), batch.begin(), batch.end());
  }
  EXPECT_EQ(seen, partition.part(Rank{0}, Epoch{0}));
}

TEST(BatchFeed, NeverHandsOutAnEmptyBatchOfAKeptPart) {
  const Partition partition = kept_parts();
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    BatchFeed feed(partition, Rank{rank}, {16, 16, 16});
    for (std::uint64_t step = 0; step < 50; ++step) {
      EXPECT_GT(feed.batch(feed.position_after(Step{step})).size(), 0U);
    }
  }
}

TEST(BatchFeed, FollowsThePartsOrder) {
  const Partition partition = partition_of(30, {1, 2});
  BatchFeed feed(partition, Rank{1}, {4, 8});
  const Samples part = partition.part(Rank{1}, Epoch{3});
  EXPECT_EQ(copy(feed.batch({Epoch{3}, 0})), Samples(part.begin(), part.begin() + 8));
  EXPECT_EQ(copy(feed.batch({Epoch{3}, 2})), Samples(part.begin() + 16, part.end()));
}

TEST(BatchFeed, FindsAnyPositionAgain) {
  const Partition partition = partition_of(500, {1, 1, 1});
  const std::vector<std::uint32_t> batch_sizes{16, 16, 16};
  BatchFeed straight(partition, Rank{2}, batch_sizes);
  std::vector<Samples> batches;
  FeedPosition position;
  for (std::uint64_t step = 0; step < 40; ++step) {
    EXPECT_EQ(position, straight.position_after(Step{step}));
    EXPECT_EQ(straight.steps_before(position), Step{step});
    batches.push_back(copy(straight.batch(position)));
    position = straight.next(position);
  }
  BatchFeed resumed(partition, Rank{2}, batch_sizes);
  for (const std::uint64_t step : {37U, 5U, 11U, 10U, 0U}) {
    EXPECT_EQ(copy(resumed.batch(resumed.position_after(Step{step}))), batches[step]);
  }
}

TEST(BatchFeed, CountsEpochsInFractions) {
  const BatchFeed feed(partition_of(40, {1}), Rank{0}, {10});
  EXPECT_EQ(feed.epochs_before({Epoch{0}, 0}), 0);
  EXPECT_EQ(feed.epochs_before({Epoch{2}, 3}), 2.75);
  EXPECT_EQ(feed.next({Epoch{2}, 3}), (FeedPosition{Epoch{3}, 0}));
}

TEST(BatchFeed, RefusesBatchSizesThatDoNotFit) {
  const Partition partition = partition_of(10, {1, 1});
  EXPECT_THROW(BatchFeed(partition, Rank{0}, {4, 0}), ConfigError);
  EXPECT_THROW(BatchFeed(partition, Rank{0}, {4}), ConfigError);
  EXPECT_THROW(BatchFeed(partition, Rank{2}, {4, 4}), InternalError);
}

}  // namespace
}  // namespace syncopate
