// Goal:   on devices of unequal speed every replica takes bitwise the same steps at the same rates;
//         no device waits, the staleness of a mini-batch follows its duration, all replicas are
//         equal at checkpoints, and pending results stay within their memory limit.
// Method: workers in the simulator, each with a device of a different speed, move a vector to the
//         mean of random samples; the replica records every step.

#include "scheme/nbssgd.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.hpp"
#include "tests/support/simulated_group.hpp"
#include "tests/support/toy_replica.hpp"

namespace syncopate {
namespace {

using testing::Each;
using testing::Eq;

constexpr std::uint32_t features = 5;
constexpr std::uint32_t samples_each = 4;  ///< samples of a mini-batch
constexpr std::uint32_t mini_batches = 8;

struct StepTaken {
  double rate = 0;
  std::vector<float> params;

  friend bool operator==(const StepTaken&, const StepTaken&) = default;
};

class NotingReplica : public QuadraticReplica {
 public:
  NotingReplica() : QuadraticReplica({.features = features, .momentum = 0.9}) { initialise(7); }

  void set_learning_rate(double rate) override {
    QuadraticReplica::set_learning_rate(rate);
    rate_ = rate;
  }
  void local_step() override {
    QuadraticReplica::local_step();
    const std::span<const float> now = view(ReplicaVector::params);
    steps.push_back({.rate = rate_, .params = {now.begin(), now.end()}});
  }

  std::vector<StepTaken> steps;

 private:
  double rate_ = 0;
};

/// State of a replica at a checkpoint.
struct Saved {
  Round round;
  std::vector<float> params;
  std::vector<float> buffers;
  std::vector<float> velocity;

  friend bool operator==(const Saved&, const Saved&) = default;
};

struct Cluster {
  std::vector<double> seconds{};  ///< seconds of a mini-batch, by rank
  double jitter = 0.05;
  bool barrier = false;
  std::uint64_t samples = 4000;                ///< samples of the job
  std::optional<Rank> asks_for_checkpoints{};  ///< after each tenth mini-batch of this worker
  std::size_t queue_bytes = std::size_t{1} << 28;
  Weights weights = Weights::samples;
};

struct Worker {
  std::vector<StepTaken> steps;
  std::vector<std::uint64_t> round_samples;  ///< samples of each outcome that holds one round
  std::vector<Saved> saved;
  std::vector<float> buffers;
  std::vector<std::uint64_t> staleness;
  std::uint64_t mini_batches = 0;
  std::uint64_t samples = 0;  ///< samples of all workers
  double seconds = 0;         ///< time until the worker leaves
  double computing = 0;
};

double rate_after(std::uint64_t samples) {
  return 0.01 * (1 + static_cast<double>(samples) / 4000);
}

Nbssgd::Options options_of(const Cluster& cluster, Replica& replica) {
  const std::span<const float> buffers = replica.view(ReplicaVector::buffers);
  return {
      .averaging = {.weights = cluster.weights,
                    .samples_to_do = cluster.samples,
                    .ahead = !cluster.barrier},
      .rounds = {.batch = {.batch_size = samples_each * mini_batches, .mini_batches = mini_batches},
                 .barrier = cluster.barrier,
                 .params = replica.view(ReplicaVector::params).size(),
                 .buffers = {buffers.begin(), buffers.end()},
                 .queue_bytes = cluster.queue_bytes},
      .learning_rate = rate_after};
}

Batch draw(Random& random) {
  Batch batch{
      .shape = {.channels = 1, .height = 1, .width = features}, .features = {}, .labels = {}};
  for (std::uint32_t i = 0; i < samples_each * features; ++i) {
    batch.features.push_back(static_cast<float>(random.normal()));
  }
  batch.labels.resize(samples_each);
  return batch;
}

Saved as_saved(Replica& replica, Round round) {
  const std::span<const float> params = replica.view(ReplicaVector::params);
  const std::span<const float> buffers = replica.view(ReplicaVector::buffers);
  return {.round = round,
          .params = {params.begin(), params.end()},
          .buffers = {buffers.begin(), buffers.end()},
          .velocity = replica.optimizer_state().slots.at("momentum_buffer")};
}

Worker train(Group& group, const Cluster& cluster) {
  NotingReplica replica;
  Nbssgd scheme(group, options_of(cluster, replica));
  Random random(group.rank().value);
  Worker worker;
  const auto act_on = [&](const SyncRound& sync_round) {
    worker.samples += sync_round.samples;
    if (sync_round.agreed.checkpoint) {
      worker.saved.push_back(as_saved(replica, sync_round.round));
    }
  };
  for (bool done = false; !done;) {
    const PassResult pass = replica.backward(draw(random));
    const double takes =
        cluster.seconds[group.rank().value] * (1 - cluster.jitter * random.uniform());
    group.world().sleep_for(from_seconds(takes));
    worker.computing += takes;
    ++worker.mini_batches;
    const bool asks = cluster.asks_for_checkpoints == group.rank() && worker.mini_batches % 10 == 0;
    const Outcome outcome = scheme.after_backward(
        replica,
        {.samples = pass.samples, .loss_sum = pass.loss_sum, .requests = {.checkpoint = asks}});
    for (const PushStatus& status : outcome.push_statuses) {
      worker.staleness.push_back(status.staleness);
    }
    if (outcome.sync_round) {
      act_on(*outcome.sync_round);
      done = outcome.sync_round->agreed.stop;
    }
    worker.seconds = to_seconds(group.world().now().time_since_epoch());
  }
  if (const auto last = scheme.leave(replica)) {
    act_on(*last);
  }
  worker.steps = replica.steps;
  worker.buffers = as_saved(replica, {}).buffers;
  return worker;
}

std::vector<Worker> trained(const Cluster& cluster) {
  return on_every_rank<Worker>(static_cast<std::uint32_t>(cluster.seconds.size()),
                               [&](Group& group) { return train(group, cluster); });
}

void expect_alike(const std::vector<Worker>& workers) {
  for (const Worker& worker : workers) {
    EXPECT_EQ(worker.steps, workers[0].steps);
    EXPECT_EQ(worker.buffers, workers[0].buffers);
    EXPECT_EQ(worker.saved, workers[0].saved);
    EXPECT_EQ(worker.samples, workers[0].samples);
  }
}

/// Checks that the model contains every computed sample.
void expect_nothing_lost(const std::vector<Worker>& workers) {
  std::uint64_t computed = 0;
  for (const Worker& worker : workers) computed += worker.mini_batches * samples_each;
  EXPECT_EQ(workers[0].samples, computed);
}

std::uint64_t most_stale(const Worker& worker) {
  return *std::max_element(worker.staleness.begin(), worker.staleness.end());
}

TEST(Nbssgd, TakesTheSameStepsOnEveryReplicaAndWaitsForNone) {
  for (const double ratio : {1.0, 2.0, 16.0, 117.0}) {
    SCOPED_TRACE(ratio);
    const auto workers = trained({.seconds = {0.01, 0.01, 0.01 * ratio}});
    expect_alike(workers);
    expect_nothing_lost(workers);
    for (const Worker& worker : workers) {
      const double waited_for_the_last_round = 0.01 * ratio;
      EXPECT_GE(worker.computing, 0.999 * (worker.seconds - waited_for_the_last_round));
    }
    EXPECT_LE(most_stale(workers[0]), 1);
    EXPECT_LE(most_stale(workers[2]), 1 + std::ceil(ratio / 7));
    EXPECT_GE(most_stale(workers[2]), std::floor(ratio / 8.5));
  }
}

TEST(Nbssgd, IsStaleNowhereWithABarrier) {
  const auto workers = trained({.seconds = {0.01, 0.013, 0.16}, .barrier = true, .samples = 1000});
  expect_alike(workers);
  expect_nothing_lost(workers);
  for (const Worker& worker : workers) {
    EXPECT_EQ(most_stale(worker), 0);
  }
}

/// The samples before a round determine its rate, and the steps record their rates.
TEST(Nbssgd, TakesEachStepAtTheRateOfItsRound) {
  const auto workers = trained({.seconds = {0.01, 0.01, 0.16}, .samples = 2000});
  const std::vector<StepTaken>& steps = workers[2].steps;
  EXPECT_EQ(steps.front().rate, rate_after(0));
  double before = 0;
  for (const StepTaken& step : steps) {
    EXPECT_GT(step.rate, before);
    before = step.rate;
  }
  const double whole_round = 2.0 * samples_each * mini_batches;
  EXPECT_NEAR((before - rate_after(0)) / static_cast<double>(steps.size() - 1),
              0.01 * whole_round / 4000, 0.1 * 0.01 * whole_round / 4000);
}

/// The last round is a whole one: no samples remain for a smaller round.
TEST(Nbssgd, EndsWithAWholeRound) {
  for (const bool barrier : {false, true}) {
    const Worker worker =
        trained({.seconds = {0.01, 0.01}, .jitter = 0, .barrier = barrier, .samples = 1280})[0];
    EXPECT_GE(worker.samples, 1280);
    EXPECT_LE(worker.samples, 1280 + 64);
    EXPECT_LE(worker.steps.size(), 1280 / 64 + 2);
  }
}

TEST(Nbssgd, WritesCheckpointsWhereAllReplicasAreAlike) {
  for (const std::uint32_t asking : {0U, 2U}) {
    for (const bool barrier : {false, true}) {
      SCOPED_TRACE(testing::Message() << asking << (barrier ? ", barrier" : ", overlap"));
      const auto workers = trained({.seconds = {0.01, 0.012, 0.16},
                                    .barrier = barrier,
                                    .samples = 8000,
                                    .asks_for_checkpoints = Rank{asking}});
      expect_alike(workers);
      expect_nothing_lost(workers);
      // A checkpoint that is requested while another one is pending is the same checkpoint.
      EXPECT_GE(workers[1].saved.size(), workers[asking].mini_batches / 30);
    }
  }
}

/// One mini-batch of the slow device takes the time of sixteen of a fast one.
TEST(Nbssgd, WaitsNoLongerForACheckpointThanForTwoMiniBatchesOfTheFast) {
  const auto workers =
      trained({.seconds = {0.01, 0.012, 0.16}, .samples = 8000, .asks_for_checkpoints = Rank{0}});
  const Worker& fast = workers[0];
  EXPECT_LE(fast.seconds - fast.computing, 0.024 * static_cast<double>(fast.saved.size()));
  EXPECT_GE(fast.saved.size(), 10);
}

TEST(Nbssgd, KeepsNoMoreResultsThanFitTheirMemory) {
  Cluster cluster{.seconds = {0.01, 0.01, 1.17}, .queue_bytes = 4 * features * sizeof(float)};
  const auto workers = trained(cluster);
  expect_alike(workers);
  expect_nothing_lost(workers);
  EXPECT_LE(most_stale(workers[2]), 4);
  EXPECT_LE(workers[0].steps.size(), 30) << "rounds wait for the slow one";
  cluster.queue_bytes *= 100;
  EXPECT_GE(trained(cluster)[0].steps.size(), 60);
}

/// Between two rounds to which a slow device contributes, it sends zeros; they do not enter the
/// mean.
TEST(Nbssgd, CountsOnlyWorkersWithSamplesByUniformWeights) {
  Cluster cluster{.seconds = {0.01, 0.16}, .jitter = 0, .weights = Weights::uniform};
  const Worker uniform = trained(cluster)[0];
  cluster.weights = Weights::samples;
  const Worker by_samples = trained(cluster)[0];
  ASSERT_GE(uniform.steps.size(), 2);
  EXPECT_EQ(uniform.steps[0], by_samples.steps[0]) << "a round of the fast device alone";
}

/// The round may begin before the worker takes results: a change that its buffers kept for the next
/// round would be lost if that is the last, and without samples.
TEST(Nbssgd, ContributesBuffersWithTheGradientsOfTheSameMiniBatch) {
  on_every_rank<int>(1, [&](Group& group) {
    Averaging averaging(group, {});
    NbssgdRounds rounds(
        group, averaging,
        {.batch = {.batch_size = samples_each, .mini_batches = 1}, .params = 1, .buffers = {1.0F}});
    std::vector<float> buffers{2.0F};
    rounds.add(std::vector<float>{0.5F}, {}, buffers, {.samples = samples_each});
    rounds.wait();
    const NbssgdRounds::Results results = rounds.take(buffers);
    EXPECT_EQ(results.front()->info.samples, samples_each);
    EXPECT_THAT(results.front()->contributed_buffers, Each(Eq(2.0F)));
    EXPECT_THAT(buffers, Each(Eq(2.0F)));
    return 0;
  });
}

TEST(Nbssgd, EndsWithoutItsPeersWhereTheWorkerFails) {
  on_every_rank<int>(2, [&](Group& group) {
    NotingReplica replica;
    Nbssgd scheme(group, options_of({.seconds = {1, 1}}, replica));
    Random random(1);
    const PassResult pass = replica.backward(draw(random));
    scheme.after_backward(replica, {.samples = pass.samples});
    return 0;
  });
}

}  // namespace
}  // namespace syncopate
