// Goal: the loader gives exactly the feed's batches, ahead of time and in bounded memory; errors
//       and cancellation reach the caller; it ends whatever it is doing.
// Method: a world of threads that knows its blocked threads, and the simulator; batches compared
//         with those gathered directly.

#include "train/loader.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "sim/simulation.hpp"
#include "tests/unit/train/thread_world.hpp"

namespace syncopate {
namespace {

constexpr std::uint32_t batch_size = 8;

class LoaderTest : public testing::Test {
 protected:
  LoaderTest() {
    Random random(1);
    dataset_.train.shape = {1, 2, 3};
    dataset_.train.pixels.resize(100 * 6);
    dataset_.train.labels.resize(100);
    for (auto& pixel : dataset_.train.pixels) {
      pixel = static_cast<std::uint8_t>(random.below(256));
    }
    for (auto& label : dataset_.train.labels) {
      label = static_cast<Label>(random.below(10));
    }
  }

  /// Rank 1 of two, whose part of 33 samples is used up before rank 0's of 67.
  static BatchFeed feed_over(std::size_t samples) {
    const std::vector<Label> labels(samples, 0);
    return {Partition(labels, {9, Split{}, {2, 1}, {}}), Rank{1}, {batch_size, batch_size}};
  }

  Loader::Options options(FeedPosition start = {}, std::size_t ahead = 3) const {
    return {dataset_, feed_over(dataset_.train.samples()), start, ahead};
  }

  test::ThreadWorld world_;
  Dataset dataset_{"toy", 10, {0.5F}, {0.25F}, {}, {}};
};

TEST_F(LoaderTest, GivesTheFeedsBatchesFromItsStart) {
  for (const FeedPosition start : {FeedPosition{Epoch{0}, 0}, FeedPosition{Epoch{4}, 3}}) {
    Loader loader(world_, options(start));
    BatchFeed feed = feed_over(100);
    FeedPosition position = start;
    std::size_t empty = 0;
    for (int step = 0; step < 60; ++step) {
      Batch expected;
      gather(dataset_, dataset_.train, feed.batch(position), expected);
      const Batch& batch = loader.next();
      ASSERT_EQ(batch.features, expected.features);
      ASSERT_EQ(batch.labels, expected.labels);
      ASSERT_EQ(batch.shape, dataset_.train.shape);
      empty += batch.samples() == 0 ? 1 : 0;
      position = feed.next(position);
    }
    EXPECT_GT(empty, 0U) << "the case of a part that is used up was not met";
  }
}

/// The features of every sample in one epoch, by label, of all workers together.
std::map<std::int64_t, std::vector<float>> epoch_of(World& world, const Dataset& dataset,
                                                    const std::vector<double>& shares,
                                                    std::uint64_t seed, Epoch epoch) {
  const std::vector<std::uint32_t> sizes(shares.size(), batch_size);
  const Partition partition(dataset.train.labels, {.seed = 9, .shares = shares});
  std::map<std::int64_t, std::vector<float>> features;
  for (std::uint32_t rank = 0; rank < shares.size(); ++rank) {
    const BatchFeed feed(partition, Rank{rank}, sizes);
    Loader loader(world, {.dataset = dataset,
                          .feed = feed,
                          .start = {epoch, 0},
                          .augmentation = Augmentation::crop_flip,
                          .seed = seed});
    for (std::uint64_t step = 0; step < feed.steps_per_epoch(); ++step) {
      const Batch& batch = loader.next();
      for (std::size_t i = 0; i < batch.samples(); ++i) {
        const auto begin = batch.features.begin() + static_cast<std::ptrdiff_t>(6 * i);
        features[batch.labels[i]] = {begin, begin + 6};
      }
    }
  }
  return features;
}

TEST_F(LoaderTest, ChangesASampleAlikeWhicheverWorkerTrainsOnIt) {
  for (std::uint32_t sample = 0; sample < 100; ++sample) {
    dataset_.train.labels[sample] = static_cast<Label>(sample);
  }
  const auto alone = epoch_of(world_, dataset_, {1}, 5, Epoch{2});
  EXPECT_EQ(alone.size(), 100U);
  EXPECT_EQ(epoch_of(world_, dataset_, {1, 3, 1}, 5, Epoch{2}), alone);
  EXPECT_NE(epoch_of(world_, dataset_, {1}, 5, Epoch{3}), alone);
  EXPECT_NE(epoch_of(world_, dataset_, {1}, 6, Epoch{2}), alone);
  Batch expected;
  gather(
      dataset_, dataset_.train, std::vector<std::uint32_t>{17},
      [](std::uint32_t sample) {
        return draw_change(Augmentation::crop_flip, 5, Epoch{2}, sample);
      },
      expected);
  EXPECT_EQ(alone.at(17), expected.features);
}

TEST_F(LoaderTest, PreparesAheadWhileTheCallerComputes) {
  Loader loader(world_, options({}, 5));
  world_.await_blocked(1);  // the preparing task, when nothing is left to fill
  const std::size_t waits = world_.waits();
  std::set<const Batch*> buffers;
  for (int step = 0; step < 5; ++step) {
    buffers.insert(&loader.next());
    world_.await_blocked(1);
  }
  EXPECT_EQ(buffers.size(), 5U);
  EXPECT_EQ(world_.waits() - waits, 4U) << "only the preparing task waits, once per buffer it got";
}

TEST_F(LoaderTest, RecyclesItsBuffers) {
  Loader loader(world_, options({}, 4));
  std::set<const Batch*> buffers;
  for (int step = 0; step < 200; ++step) {
    buffers.insert(&loader.next());
  }
  EXPECT_EQ(buffers.size(), 5U);
}

TEST_F(LoaderTest, KeepsAtLeastTwoBatchesReady) {
  Loader loader(world_, options({}, 0));
  std::set<const Batch*> buffers;
  for (int step = 0; step < 50; ++step) {
    buffers.insert(&loader.next());
  }
  EXPECT_EQ(buffers.size(), 3U);
}

TEST_F(LoaderTest, KeepsABatchUntilTheNextCall) {
  Loader loader(world_, options());
  const Batch& batch = loader.next();
  const Batch copy = batch;
  world_.await_blocked(1);  // everything else is prepared by now
  EXPECT_EQ(batch.features, copy.features);
  EXPECT_EQ(batch.labels, copy.labels);
}

TEST_F(LoaderTest, EndsAtOnceWhateverItIsDoing) {
  for (int round = 0; round < 200; ++round) {
    Loader loader(world_, options());
    for (int step = 0; step < round % 7; ++step) {
      loader.next();
    }
  }
  const Loader idle(world_, options());
  world_.await_blocked(1);
}

TEST_F(LoaderTest, EndsWhenTheWorldIsCancelled) {
  Loader loader(world_, options());
  world_.await_blocked(1);
  world_.cancel(std::make_exception_ptr(Cancelled("by the test")));
  const auto drain = [&] {
    for (int step = 0; step < 10; ++step) {
      loader.next();
    }
  };
  EXPECT_THROW(drain(), Cancelled);
  EXPECT_THROW(loader.next(), Cancelled);
}

TEST_F(LoaderTest, RethrowsWhatEndedThePreparingTask) {
  // The feed's training set is larger than the data: some index leads nowhere.
  Loader loader(world_, {dataset_, feed_over(1'000), {}, 3});
  const auto drain = [&] {
    for (int step = 0; step < 100; ++step) {
      loader.next();
    }
  };
  EXPECT_THROW(drain(), InternalError);
  EXPECT_THROW(loader.next(), InternalError);
}

TEST_F(LoaderTest, CostsNoVirtualTime) {
  sim::Simulation simulation({});
  std::size_t samples = 0;
  simulation.add_node("worker", [&](World& world) {
    Loader loader(world, options());
    for (std::uint64_t step = 0; step < 2 * feed_over(100).steps_per_epoch(); ++step) {
      samples += loader.next().samples();
    }
  });
  simulation.run();
  EXPECT_EQ(samples, 2U * 33U);
  EXPECT_EQ(simulation.now(), TimePoint());
}

TEST_F(LoaderTest, EndsWithItsSimulatedNode) {
  sim::Simulation simulation({});
  bool survived = false;
  const NodeId node = simulation.add_node("worker", [&](World& world) {
    Loader loader(world, options());
    loader.next();
    world.sleep_for(std::chrono::seconds(10));
    survived = true;
  });
  const TimePoint death(std::chrono::seconds(2));
  simulation.at(death, [&] { simulation.kill(node); });
  simulation.run();
  EXPECT_FALSE(survived);
  EXPECT_EQ(simulation.now(), death);
}

TEST_F(LoaderTest, IsCancelledInTheSimulatorToo) {
  sim::Simulation simulation({});
  simulation.add_node("worker", [&](World& world) {
    Loader loader(world, options());
    world.cancel(std::make_exception_ptr(Cancelled("by the test")));
    const auto drain = [&] {
      for (int step = 0; step < 10; ++step) {
        loader.next();
      }
    };
    EXPECT_THROW(drain(), Cancelled);
  });
  simulation.run();
}

}  // namespace
}  // namespace syncopate
