// Goal:   the saved buffers are a mean of the workers' buffers, weighted by the samples behind
//         them, also after a resume; gradients that are too old are dropped; a state that contains
//         any loss can be read back.
// Method: pushes of two workers, one with 300 steps, one with 3 steps of half the samples; pushes
//         of large losses; counters set to -1.

#include "server/shard_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/errors.hpp"

namespace syncopate {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

ShardStore::Options two_workers() {
  return {.params = 1,
          .buffers = 1,
          .workers = 2,
          .rule = {.name = "sgd"},
          .learning_rate = [](std::uint64_t) { return 0.1; }};
}

void push(ShardStore& store, Rank worker, const PushFacts& facts, float buffer) {
  store.slot(worker).buffers = {buffer};
  store.record_push(worker, facts);
  store.apply(worker, /*answer=*/false);
}

TEST(ShardStore, AveragesBuffersByTheSamplesTheyComeFrom) {
  ShardStore store(two_workers());
  store.load(std::vector<float>{0}, std::vector<float>{9});
  EXPECT_THAT(store.mean_buffers(), ElementsAre(9)) << "those to begin with";
  for (std::uint64_t step = 1; step <= 300; ++step) {
    push(store, Rank{0}, {.step = step, .samples = 128}, 1);
  }
  for (std::uint64_t step = 1; step <= 3; ++step) {
    push(store, Rank{1}, {.step = step, .samples = 64}, 202);
  }
  EXPECT_THAT(store.mean_buffers(), ElementsAre(FloatNear(2, 1e-5F)));

  ShardStore resumed(two_workers());
  resumed.restore(store.state());
  EXPECT_EQ(resumed.mean_buffers(), store.mean_buffers());
}

TEST(ShardStore, DropsGradientsThatAreAsOldAsTheLimitOrOlder) {
  ShardStore::Options options = two_workers();
  options.max_delay = 2;
  ShardStore store(options);
  store.load(std::vector<float>{1}, std::vector<float>{0});
  const auto push_one = [&](Rank worker) {
    store.slot(worker).in[0] = 1;
    store.record_push(worker, {.samples = 4});
    store.apply(worker, /*answer=*/true);
    return store.slot(worker).dropped;
  };
  EXPECT_FALSE(push_one(Rank{0}));
  EXPECT_FALSE(push_one(Rank{1})) << "one update ago";
  EXPECT_EQ(store.slot(Rank{1}).staleness, 1U);
  EXPECT_FALSE(push_one(Rank{0}));
  EXPECT_FALSE(push_one(Rank{0}));
  EXPECT_TRUE(push_one(Rank{1})) << "two updates ago";
  EXPECT_EQ(store.version(), 4U);
  EXPECT_EQ(store.samples(), 16U);
  EXPECT_NEAR(store.params()[0], 1 - 4 * 0.1, 1e-6);
  EXPECT_EQ(store.slot(Rank{1}).out[0], store.params()[0]) << "it goes on with the newest model";
  EXPECT_FALSE(push_one(Rank{1}));
}

TEST(ShardStore, ALossThatOverflowsIsStoredAsTheLargestAndGoesOn) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double loss : {1e13, 1e300, infinity, -infinity, std::nan("")}) {
    ShardStore store(two_workers());
    store.load(std::vector<float>{0}, std::vector<float>{9});
    push(store, Rank{0}, {.step = 1, .samples = 1, .loss_sum = loss}, 1);
    const ShardState state = store.state();
    EXPECT_EQ(state.rest.counters.at("loss"), 9'000'000'000'000'000'000) << loss;
    ShardStore resumed(two_workers());
    resumed.restore(state);
    EXPECT_EQ(resumed.loss_sum(), 9e12) << loss;
  }
  ShardStore store(two_workers());
  store.load(std::vector<float>{0}, std::vector<float>{9});
  push(store, Rank{0}, {.step = 1, .samples = 1, .loss_sum = 2.5}, 1);
  EXPECT_EQ(store.state().rest.counters.at("loss"), 2'500'000);
}

TEST(ShardStore, RefusesCountsThatAreImpossible) {
  ShardStore store(two_workers());
  store.load(std::vector<float>{0}, std::vector<float>{9});
  const ShardState good = store.state();
  for (const auto& [name, value] : good.rest.counters) {
    if (name != "loss") {
      ShardState damaged = good;
      damaged.rest.counters[name] = -1;
      EXPECT_THROW(ShardStore(two_workers()).restore(damaged), DataError) << name;
    }
  }
}

}  // namespace
}  // namespace syncopate
