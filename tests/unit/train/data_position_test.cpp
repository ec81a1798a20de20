// Goal:   a worker that goes on from its position in the data sees the samples that it would have
//         seen, none of them twice.
// Method: 500 random sequences of sizes over a feed of several mini-batches, cut at a random place:
//         what a second cutter hands out from the position there is what the first one goes on
//         with.

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "data/partition.hpp"
#include "tests/unit/train/numbered_dataset.hpp"
#include "tests/unit/train/thread_world.hpp"
#include "train/loader.hpp"

namespace syncopate {
namespace {

using test::numbered;
using test::ThreadWorld;

/// A loader and a cutter that begin at a position.
class Reader {
 public:
  Reader(World& world, const Dataset& dataset, const BatchFeed& feed, MicroBatcher::Empty empty,
         const DataPosition& start)
      : loader_(
            world,
            {.dataset = dataset, .feed = feed, .start = feed.position_after(Step{start.batch})}),
        cutter_(loader_, empty, start) {}

  std::vector<std::int64_t> read(std::uint32_t samples) {
    const Batch& batch = cutter_.next(samples);
    return {batch.labels.begin(), batch.labels.end()};
  }
  DataPosition position() const { return cutter_.position(); }

 private:
  Loader loader_;
  MicroBatcher cutter_;
};

TEST(DataPosition, GoesOnWithTheNextSample) {
  ThreadWorld world;
  const Dataset dataset = numbered(24);
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    // Of 24 samples worker 0 has 8, in two mini-batches; worker 1 has 16, in three: worker 0 has an
    // empty one.
    const BatchFeed feed(Partition(dataset.train.labels, {.seed = seed, .shares = {1.0, 2.0}}),
                         Rank{static_cast<std::uint32_t>(random.below(2))}, {4, 7});
    const auto empty = MicroBatcher::Empty::skipped;
    Reader whole(world, dataset, feed, empty, {});
    for (std::uint64_t steps = random.below(12); steps > 0; --steps) {
      whole.read(static_cast<std::uint32_t>(random.below(6)));
    }
    Reader resumed(world, dataset, feed, empty, whole.position());
    for (int step = 0; step < 8; ++step) {
      const auto samples = static_cast<std::uint32_t>(random.below(6));
      ASSERT_EQ(resumed.read(samples), whole.read(samples)) << "step " << step;
      ASSERT_EQ(resumed.position(), whole.position());
    }
  }
}

TEST(DataPosition, CountsMiniBatchesThatAreDoneWith) {
  ThreadWorld world;
  const Dataset dataset = numbered(12);
  const BatchFeed feed(Partition(dataset.train.labels, {.seed = 1, .shares = {1.0}}), Rank{0}, {5});
  Reader reader(world, dataset, feed, MicroBatcher::Empty::kept, {});
  EXPECT_EQ(reader.position(), DataPosition{});
  reader.read(3);
  EXPECT_EQ(reader.position(), (DataPosition{.batch = 0, .taken = 3}));
  reader.read(2);
  EXPECT_EQ(reader.position(), (DataPosition{.batch = 1}));
  reader.read(6);
  EXPECT_EQ(reader.position(), (DataPosition{.batch = 2, .taken = 1}));
}

}  // namespace
}  // namespace syncopate
