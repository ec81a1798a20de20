// Goal:   a store with several threads has bitwise the same content as a store with one thread.
// Method: the same random pushes (seed printed) to a store with one thread and to one with three.

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/random.hpp"
#include "server/shard_store.hpp"

namespace syncopate {
namespace {

ShardStore store_with(std::uint32_t threads, std::size_t values) {
  return ShardStore({.params = values,
                     .workers = 2,
                     .rule = {.name = "momentum", .momentum = 0.9F},
                     .learning_rate = [](std::uint64_t) { return 0.1; },
                     .threads = threads});
}

std::vector<float> trained(ShardStore& store, std::uint64_t seed) {
  Random random = Random(seed).fork("values", 0);
  const auto draw = [&](std::span<float> values) {
    for (float& value : values) {
      value = static_cast<float>(random.uniform()) - 0.5F;
    }
  };
  std::vector<float> params(store.params().size());
  draw(params);
  store.load(params, {});
  const std::vector<Rank> both{Rank{0}, Rank{1}};
  for (int step = 0; step < 3; ++step) {
    for (const Rank worker : both) {
      draw(store.slot(worker).in);
      store.slot(worker).facts = {.samples = 3 + worker.value,
                                  .weight = 3.0F + static_cast<float>(worker.value)};
    }
    store.apply(Rank{0}, true);
    store.apply_mean(both);
    store.read(Rank{1});
  }
  std::vector<float> found(store.params().begin(), store.params().end());
  found.insert(found.end(), store.slot(Rank{0}).out.begin(), store.slot(Rank{0}).out.end());
  found.insert(found.end(), store.slot(Rank{1}).out.begin(), store.slot(Rank{1}).out.end());
  return found;
}

TEST(ShardStore, HasTheSameBitsWithSeveralThreads) {
  constexpr std::uint64_t seed = 8;
  constexpr std::size_t values = 600'001;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  ShardStore single = store_with(1, values);
  ShardStore threaded = store_with(3, values);
  const std::vector<float> expected = trained(single, seed);
  const std::vector<float> found = trained(threaded, seed);
  ASSERT_EQ(found.size(), expected.size());
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0);
}

}  // namespace
}  // namespace syncopate
