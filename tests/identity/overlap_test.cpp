// Goal:   `ssgd` takes the same steps with and without overlap, bit for bit, with every allreduce
//         algorithm, any numbers of samples per worker, and any order in which gradients become
//         final; overlap hides the allreduce behind the backward pass.
// Method: logistic regression with momentum in the simulator, in seven buckets. The pieces of a
//         gradient take virtual time to compute, in a random order (seed printed) that differs by
//         rank and step.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "scheme/ssgd.hpp"
#include "tests/support/simulated_group.hpp"
#include "tests/support/toy_replica.hpp"

namespace syncopate::overlap_test {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::EndsWith;
using testing::Eq;

constexpr ToyReplica::Options toy{.features = 30, .classes = 20, .momentum = 0.9};
constexpr std::uint64_t seed = 11;
constexpr std::uint64_t steps = 8;
constexpr std::size_t buckets = 7;

/// Takes virtual time for each piece of its gradient before it reports that piece.
class SlowReplica : public LogisticReplica {
 public:
  enum class Order { last_first, random };

  SlowReplica(World& world, Order order, Duration piece_time, std::uint64_t draws)
      : LogisticReplica(toy),
        world_(world),
        order_(order),
        piece_time_(piece_time),
        random_(draws) {
    initialise(seed);
  }

  using Replica::backward;
  PassResult backward(const Batch& batch, GradientSink* sink) override {
    const PassResult result = LogisticReplica::backward(batch, nullptr);
    for (const std::size_t piece : pieces()) {
      world_.sleep_for(piece_time_);
      if (sink != nullptr) {
        const std::size_t all = view(ReplicaVector::grads).size();
        sink->ready(all * piece / count, all * (piece + 1) / count);
      }
    }
    return result;
  }

  static constexpr std::size_t count = 10;
  static constexpr Duration piece_time = 10ms;

 private:
  std::vector<std::size_t> pieces() {
    std::vector<std::size_t> pieces;
    for (std::size_t left = count; left > 0; --left) {
      pieces.push_back(left - 1);
    }
    for (std::size_t i = count; order_ == Order::random && i > 1; --i) {
      std::swap(pieces[i - 1], pieces[random_.below(i)]);
    }
    return pieces;
  }

  World& world_;
  Order order_;
  Duration piece_time_;
  Random random_;
};

Batch batch_of(std::uint64_t step, std::uint32_t rank, std::uint32_t samples) {
  Random random = Random(seed).fork("batch", step * 100 + rank);
  Batch batch{.shape = {1, 1, toy.features}, .features = {}, .labels = {}};
  for (std::uint32_t i = 0; i < samples; ++i) {
    batch.labels.push_back(static_cast<std::int64_t>(random.below(toy.classes)));
    for (std::size_t j = 0; j < toy.features; ++j) {
      batch.features.push_back(static_cast<float>(random.normal()));
    }
  }
  return batch;
}

struct Case {
  std::vector<std::uint32_t> batch_sizes;  ///< by rank
  std::string reducer = "auto";
  Weights weights = Weights::samples;
  bool shared_memory = false;
  SlowReplica::Order order = SlowReplica::Order::random;
  sim::NetworkProfile network{};
  Duration slowest_piece = SlowReplica::piece_time;  ///< time of a piece on the last rank
};

struct Trained {
  std::vector<float> params;
  std::vector<float> buffers;
  Duration took{};         ///< total after the first step
  Duration communicate{};  ///< total after the first step
  Duration wait{};
  std::string aggregate;
};

std::vector<float> copy_of(Replica& replica, ReplicaVector which) {
  const auto values = replica.view(which);
  return {values.begin(), values.end()};
}

Trained train_rank(Group& group, const Case& example, bool overlap) {
  const std::uint32_t rank = group.rank().value;
  const bool last = rank + 1 == group.size();
  SlowReplica replica(group.world(), example.order,
                      last ? example.slowest_piece : SlowReplica::piece_time, seed + rank);
  Ssgd scheme(group, {.averaging = {.weights = example.weights,
                                    .reducer = find_reducer(example.reducer),
                                    .buckets = {{.overlap = overlap, .buckets = buckets}}}});
  Trained trained;
  TimePoint begun{};
  for (std::uint64_t i = 0; i < steps; ++i) {
    begun = i == 1 ? group.world().now() : begun;
    const Batch batch = batch_of(i, rank, example.batch_sizes[rank]);
    const auto samples = static_cast<std::uint32_t>(batch.samples());
    const PassResult pass = replica.backward(batch, scheme.before_backward(replica, samples));
    const Spent spent =
        scheme.after_backward(replica, {.samples = pass.samples, .loss_sum = pass.loss_sum}).spent;
    trained.communicate += i > 0 ? spent.communicate : Duration::zero();
    trained.wait += i > 0 ? spent.wait : Duration::zero();
  }
  trained.params = copy_of(replica, ReplicaVector::params);
  trained.buffers = copy_of(replica, ReplicaVector::buffers);
  trained.took = group.world().now() - begun;
  trained.aggregate = scheme.aggregate();
  return trained;
}

std::vector<Trained> train(const Case& example, bool overlap) {
  const auto size = static_cast<std::uint32_t>(example.batch_sizes.size());
  SimulatedGroup group{.size = size, .network = example.network};
  if (example.shared_memory) {
    group.hosts.assign(size, 0);
    group.shared_memory = true;
  }
  return on_every_rank<Trained>(
      group, [&](Group& members) { return train_rank(members, example, overlap); });
}

void expect_same_bits(const std::vector<float>& one, const std::vector<float>& other) {
  ASSERT_EQ(one.size(), other.size());
  EXPECT_EQ(std::memcmp(one.data(), other.data(), one.size() * sizeof(float)), 0);
}

void expect_no_difference(const Case& example) {
  SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << example.batch_sizes.size()
                                  << " ranks, " << example.reducer);
  const std::vector<Trained> with = train(example, true);
  const std::vector<Trained> without = train(example, false);
  for (std::size_t rank = 0; rank < with.size(); ++rank) {
    expect_same_bits(with[rank].params, without[0].params);
    expect_same_bits(with[rank].buffers, without[0].buffers);
  }
}

TEST(Overlap, MakesNoDifferenceWhateverAddsUp) {
  for (std::uint32_t size = 1; size <= 5; ++size) {
    const std::vector<std::uint32_t> equal(size, 8);
    for (const char* const reducer : {"auto", "ring", "binary-blocks", "tree"}) {
      expect_no_difference({.batch_sizes = equal, .reducer = reducer});
    }
    expect_no_difference({.batch_sizes = equal, .reducer = "shm", .shared_memory = true});
  }
  expect_no_difference({.batch_sizes = {8, 8, 8, 8}, .reducer = "butterfly"});
}

TEST(Overlap, MakesNoDifferenceForUnequalAndIdleRanks) {
  for (const Weights weights : {Weights::samples, Weights::uniform}) {
    expect_no_difference({.batch_sizes = {32, 8, 3, 1}, .weights = weights});
    expect_no_difference({.batch_sizes = {8, 0, 8}, .weights = weights});
  }
}

TEST(Overlap, HidesSumsBehindTheBackwardPass) {
  // An allreduce of 2,480 bytes at 25 kB/s takes about 0.1 s, as long as a backward pass.
  const Case example{.batch_sizes = {8, 8},
                     .reducer = "ring",
                     .order = SlowReplica::Order::last_first,
                     .network = {.link = {.bandwidth = 25e3, .latency = 50us}}};
  const std::vector<Trained> with = train(example, true);
  const std::vector<Trained> without = train(example, false);
  EXPECT_THAT(with[0].aggregate, EndsWith(", in 7 buckets"));
  EXPECT_EQ(with[0].aggregate, without[0].aggregate);
  const Duration passes = (steps - 1) * SlowReplica::count * SlowReplica::piece_time;
  EXPECT_GT(without[0].took, 1.9 * passes);
  EXPECT_LT(with[0].took, 1.5 * passes);
  EXPECT_LT(with[0].communicate, without[0].communicate / 2);
  EXPECT_EQ(with[0].took, passes + with[0].communicate + with[0].wait);
}

TEST(Overlap, CountsAsWaitingWhatOthersAreLate) {
  const Case example{.batch_sizes = {8, 8},
                     .order = SlowReplica::Order::last_first,
                     .slowest_piece = SlowReplica::piece_time * 3 / 2};
  const Duration late = (steps - 1) * SlowReplica::count * SlowReplica::piece_time / 2;
  for (const bool overlap : {true, false}) {
    const std::vector<Trained> trained = train(example, overlap);
    EXPECT_NEAR(to_seconds(trained[0].wait), to_seconds(late), 0.02);
    EXPECT_LT(trained[1].wait, 20ms);
  }
}

/// Reports only half of its gradient.
class Forgetful : public LogisticReplica {
 public:
  Forgetful() : LogisticReplica(toy) {}
  using Replica::backward;
  PassResult backward(const Batch& batch, GradientSink* sink) override {
    if (sink != nullptr) {
      sink->ready(0, view(ReplicaVector::grads).size() / 2);
    }
    return LogisticReplica::backward(batch, nullptr);
  }
};

TEST(Overlap, NamesAGradientOfWhichNotAllWasTold) {
  const auto errors = on_every_rank<std::string>(2, [](Group& group) {
    Forgetful replica;
    Ssgd scheme(group, {.averaging = {.buckets = {{.buckets = buckets}}}});
    try {
      for (std::uint64_t i = 0; i < steps; ++i) {
        replica.backward(batch_of(i, 0, 4), scheme.before_backward(replica, 4));
        scheme.after_backward(replica, {.samples = 4});
      }
    } catch (const InternalError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  });
  EXPECT_THAT(errors, Each(Eq("a backward pass ended before it reported its whole gradient")));
}

TEST(Overlap, IsForAllOrForNobody) {
  const auto aggregates = on_every_rank<int>(3, [](Group& group) {
    LogisticReplica replica(toy);
    const bool wants = group.rank() != Rank{1};
    Ssgd scheme(group, {.averaging = {.buckets = {{.overlap = wants, .buckets = buckets}}}});
    int overlapped = 0;
    for (std::uint64_t i = 0; i < steps; ++i) {
      GradientSink* const sink = scheme.before_backward(replica, 4);
      overlapped += sink != nullptr ? 1 : 0;
      replica.backward(batch_of(i, 0, 4), sink);
      scheme.after_backward(replica, {.samples = 4});
    }
    return overlapped;
  });
  EXPECT_THAT(aggregates, Each(0));
}

}  // namespace
}  // namespace syncopate::overlap_test
