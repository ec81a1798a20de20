// Goal:   every sample of a feed is handed out once, in order, whatever the sizes that are asked
//         for; empty mini-batches are kept or passed over.
// Method: a dataset whose k-th image has pixels of value k, cut by sizes that change.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/partition.hpp"
#include "tests/unit/train/numbered_dataset.hpp"
#include "tests/unit/train/thread_world.hpp"
#include "train/loader.hpp"

namespace syncopate {
namespace {

using test::numbered;
using test::ThreadWorld;
using testing::ElementsAre;

BatchFeed feed_of(const Dataset& dataset, Rank worker, std::vector<std::uint32_t> batch_sizes) {
  Partition partition(dataset.train.labels, {.seed = 1, .shares = {1.0, 2.0}});
  return BatchFeed(std::move(partition), worker, std::move(batch_sizes));
}

std::vector<std::int64_t> whole_epoch(BatchFeed feed, const Dataset& dataset) {
  std::vector<std::int64_t> labels;
  for (std::uint64_t step = 0; step < feed.steps_per_epoch(); ++step) {
    for (const std::uint32_t sample : feed.batch({Epoch{0}, step})) {
      labels.push_back(dataset.train.labels[sample]);
    }
  }
  return labels;
}

TEST(MicroBatcher, HandsOutEverySampleOnceInTheFeedsOrder) {
  ThreadWorld world;
  const Dataset dataset = numbered(24);
  const BatchFeed feed = feed_of(dataset, Rank{1}, {4, 7});  // 16 samples: 7, 7, 2
  Loader loader(world, {.dataset = dataset, .feed = feed, .start = {}});
  MicroBatcher cutter(loader, MicroBatcher::Empty::kept);
  std::vector<std::int64_t> labels;
  std::vector<std::size_t> sizes;
  for (const std::uint32_t wanted : {3U, 3U, 3U, 0U, 2U}) {
    const Batch& batch = cutter.next(wanted);
    sizes.push_back(batch.samples());
    labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
    EXPECT_EQ(batch.features.size(), batch.samples());
    EXPECT_EQ(batch.shape, dataset.train.shape);
  }
  EXPECT_THAT(sizes, ElementsAre(3, 3, 3, 5, 2));
  EXPECT_EQ(labels, whole_epoch(feed, dataset));
}

TEST(MicroBatcher, FillsUpARestOfFewSamples) {
  ThreadWorld world;
  const Dataset dataset = numbered(24);
  const BatchFeed feed = feed_of(dataset, Rank{1}, {4, 7});
  Loader loader(world, {.dataset = dataset, .feed = feed, .start = {}});
  MicroBatcher cutter(loader, MicroBatcher::Empty::kept);
  cutter.next(5);
  const Batch& filled = cutter.next(0);
  EXPECT_EQ(filled.samples(), 7U) << "2 of the first one, 5 of the second";
  const std::vector<std::int64_t> all = whole_epoch(feed, dataset);
  EXPECT_THAT(filled.labels, testing::ElementsAreArray(all.begin() + 5, all.begin() + 12));
  EXPECT_EQ(cutter.position(), (DataPosition{.batch = 1, .taken = 5}));
}

TEST(MicroBatcher, KeepsTheWeightsOfItsSamples) {
  ThreadWorld world;
  Dataset dataset = numbered(24);
  for (std::uint8_t sample = 0; sample < 24; ++sample) {
    dataset.train.weights.push_back(static_cast<float>(sample) / 2);
  }
  const BatchFeed feed = feed_of(dataset, Rank{1}, {4, 7});
  Loader loader(world, {.dataset = dataset, .feed = feed, .start = {}});
  MicroBatcher cutter(loader, MicroBatcher::Empty::kept);
  for (const std::uint32_t wanted : {7U, 5U, 4U}) {
    const Batch& batch = cutter.next(wanted);
    ASSERT_EQ(batch.weights.size(), wanted);
    for (std::size_t i = 0; i < wanted; ++i) {
      EXPECT_EQ(batch.weights[i], static_cast<float>(batch.labels[i]) / 2);
    }
  }
}

TEST(MicroBatcher, PassesOverEmptyBatchesWhereToldTo) {
  ThreadWorld world;
  const Dataset dataset = numbered(24);
  const BatchFeed feed = feed_of(dataset, Rank{0}, {8, 4});  // 8 samples, then empty until step 4
  Loader first(world, {.dataset = dataset, .feed = feed, .start = {}});
  MicroBatcher kept(first, MicroBatcher::Empty::kept);
  kept.next(0);
  EXPECT_EQ(kept.next(0).samples(), 0U);
  Loader second(world, {.dataset = dataset, .feed = feed, .start = {}});
  MicroBatcher skipped(second, MicroBatcher::Empty::skipped);
  skipped.next(0);
  EXPECT_EQ(skipped.next(5).samples(), 5U);
}

}  // namespace
}  // namespace syncopate
