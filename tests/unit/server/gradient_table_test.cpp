// Goal:   with a table of gradients each worker counts alike in the model, however often it pushes,
//         and a gradient misses fewer than two updates for each worker.
// Method: pushes in given orders; two workers with convex losses of different minima, one of them
//         ten times as fast, with the table and without; pushes in random orders.

#include "server/gradient_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "base/random.hpp"

namespace syncopate {
namespace {

using testing::Optional;

struct Table {
  explicit Table(std::size_t workers) : table(1, workers) {}

  /// The mean, if the push of this gradient brings an update.
  std::optional<float> push(std::uint32_t worker, float gradient, float weight = 1) {
    const bool updates = table.add(Rank{worker}, std::vector<float>{gradient}, weight);
    return updates ? std::optional(table.mean()[0]) : std::nullopt;
  }

  GradientTable table;
};

TEST(GradientTable, OneWorkerUpdatesWithEachGradient) {
  Table one(1);
  EXPECT_THAT(one.push(0, 3), Optional(3));
  EXPECT_THAT(one.push(0, 4, 7), Optional(4));
}

TEST(GradientTable, CollectsOneOfEachWorkerThenEachUpdatesOnce) {
  Table two(2);
  EXPECT_EQ(two.push(0, 1), std::nullopt);
  EXPECT_EQ(two.push(0, 2), std::nullopt);
  EXPECT_EQ(two.push(0, 3), std::nullopt);
  EXPECT_THAT(two.push(1, 10), Optional(6)) << "the mean of 2 and 10";
  EXPECT_EQ(two.push(1, 40, 3), std::nullopt) << "it has updated in this round";
  EXPECT_THAT(two.push(0, 100), Optional(6));
  EXPECT_THAT(two.push(0, 200), Optional(testing::FloatEq(95))) << "the mean of 150 and 40";
  EXPECT_THAT(two.push(1, 80), Optional(testing::FloatEq(95)));
}

TEST(GradientTable, WeighsTheGradientsOfOneWorkerByTheirWeights) {
  Table two(2);
  two.push(0, 1, 3);
  two.push(0, 5, 1);
  EXPECT_THAT(two.push(1, 0, 100), Optional(1)) << "the mean of 2 and 0";
}

TEST(GradientTable, WaitsForNoWorkerThatIsGone) {
  Table three(3);
  three.push(0, 2);
  three.push(1, 4);
  three.table.remove(Rank{2});
  EXPECT_THAT(three.push(0, 2), Optional(3));
  three.table.remove(Rank{1});
  EXPECT_THAT(three.push(0, 8), Optional(8)) << "the round has ended with the worker";
  three.table.restore(Rank{1});
  EXPECT_EQ(three.push(0, 8), std::nullopt);
  EXPECT_THAT(three.push(1, 4), Optional(6));
}

/// Workers whose loss is (x − centre)² / 2, at a server.
class Workers {
 public:
  Workers(std::vector<float> centres, ConsistencyOptions::Kind kind)
      : centres_(std::move(centres)),
        store_({.params = 1,
                .buffers = 0,
                .workers = static_cast<std::uint32_t>(centres_.size()),
                .rule = {.name = "sgd"},
                .learning_rate = [](std::uint64_t) { return 0.02; }}),
        server_(make_consistency(store_, {.kind = kind})) {
    store_.load(std::vector<float>{0}, {});
    for (std::uint32_t rank = 0; rank < centres_.size(); ++rank) {
      store_.read(Rank{rank});
    }
  }

  /// Returns the updates that the gradient has missed.
  std::uint64_t step(std::uint32_t rank) {
    WorkerSlot& slot = store_.slot(Rank{rank});
    slot.in[0] = slot.out[0] - centres_[rank];
    store_.record_push(Rank{rank}, {.samples = 1});
    EXPECT_THAT(server_->on_request(Rank{rank}, true, true), testing::ElementsAre(Rank{rank}));
    return slot.staleness;
  }

  const ShardStore& store() const { return store_; }

 private:
  const std::vector<float> centres_;
  ShardStore store_;
  std::unique_ptr<Consistency> server_;
};

float model_after_training(ConsistencyOptions::Kind kind) {
  Workers workers({0, 11}, kind);
  for (int round = 0; round < 2000; ++round) {
    for (int step = 0; step < 10; ++step) {
      workers.step(0);
    }
    workers.step(1);
  }
  EXPECT_EQ(workers.store().samples(), 22'000U);
  return workers.store().params()[0];
}

TEST(GradientTable, AFastWorkersDataCountNoMoreThanASlowOnes) {
  EXPECT_NEAR(model_after_training(ConsistencyOptions::Kind::table), 5.5, 0.01);
  EXPECT_LT(model_after_training(ConsistencyOptions::Kind::at_once), 2) << "asgd without a table";
}

TEST(GradientTable, AGradientMissesFewerThanTwoUpdatesAWorker) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const auto count = static_cast<std::uint32_t>(2 + random.below(6));
    Workers workers(std::vector<float>(count, 1), ConsistencyOptions::Kind::table);
    std::uint64_t most = 0;
    for (int step = 0; step < 2000; ++step) {
      // Workers with a lower rank are faster.
      const auto rank = static_cast<std::uint32_t>(random.below(1 + random.below(count)));
      most = std::max(most, workers.step(rank));
    }
    EXPECT_LE(most, 2 * count - 2);
    EXPECT_GT(workers.store().version(), 100U);
  }
}

}  // namespace
}  // namespace syncopate
