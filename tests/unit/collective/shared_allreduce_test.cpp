// Goal:   an allreduce in shared memory is exact for every number of ranks and every length, with
//         the same bits on each rank, whether or not the values are in shared memory, and whether
//         ranks write into each other's vectors or copy from them; if one rank cannot share memory,
//         no rank does; all other ranks name a rank that dies during an allreduce.
// Method: 1 to 17 ranks in the simulator, with lengths around the boundaries of slices, segments
//         and short vectors, and sums of whole numbers, which float32 represents exactly. A rank
//         dies at each of many moments.

#include "collective/shared_allreduce.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <utility>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "tests/support/simulated_group.hpp"
#include "transport/shared_memory.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using Floats = std::vector<float>;

SimulatedGroup sharing(std::uint32_t size) {
  return {.size = size, .shared_memory = true};
}

/// A listener whose losses a function of the test computes; the function may take virtual time.
class ComputedLosses : public FailureListener {
 public:
  using Look = std::function<std::vector<Rank>()>;
  explicit ComputedLosses(Look look) : look_(std::move(look)) {}

  std::vector<Rank> lost() const override { return look_(); }
  void finished() override {}
  bool all_finished() const override { return false; }
  bool await_more(std::size_t, TimePoint) override { return false; }

 private:
  Look look_;
};

/// Returns a group of the same members that may lose some of them.
Group that_may_shrink(Group& group, FailureListener& losses) {
  Group::Options options{.members = {}, .self = group.rank(), .failures = &losses};
  for (std::uint32_t rank = 0; rank < group.size(); ++rank) {
    options.members.push_back(group.node(Rank{rank}));
  }
  return {group.world(), std::move(options)};
}

enum class Where { own_memory, shared_memory };

/// A vector of a rank, in its own or in shared memory.
class Vector {
 public:
  Vector(Group& group, Where where, std::size_t count)
      : memory_(make_values(
            where == Where::shared_memory ? group.transport().shared_memory() : nullptr, count)),
        values_(memory_.get(), count) {}

  std::span<float> values() const { return values_; }
  Floats copy() const { return {values_.begin(), values_.end()}; }

 private:
  std::shared_ptr<float> memory_;
  std::span<float> values_;
};

float value_of(std::uint32_t rank, std::size_t place) {
  return static_cast<float>(place % 1000 + rank);
}

float sum_at(std::uint32_t ranks, std::size_t place) {
  const std::size_t sum = ranks * (place % 1000) + ranks * (ranks - 1) / 2;
  return static_cast<float>(sum);
}

void fill(Group& group, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = value_of(group.rank().value, i);
  }
}

class SharedReduction : public testing::TestWithParam<std::uint32_t> {};

TEST_P(SharedReduction, IsExactForEveryLengthAndPlace) {
  const std::uint32_t size = GetParam();
  for (const Where where : {Where::own_memory, Where::shared_memory}) {
    const auto results = on_every_rank<std::vector<Floats>>(sharing(size), [&](Group& group) {
      const auto shared = SharedAllreduce::make(group);
      std::vector<Floats> sums;
      for (const std::size_t length : {0, 1, 2, 17, 1024, 1025, 5001, 3 * 32 * 1024 * 3 + 5}) {
        const Vector vector(group, where, length);
        fill(group, vector.values());
        shared->reduce({.values = vector.values()});
        sums.push_back(vector.copy());
      }
      return sums;
    });
    for (const auto& sums : results) {
      for (const Floats& values : sums) {
        for (std::size_t i = 0; i < values.size(); ++i) {
          ASSERT_EQ(values[i], sum_at(size, i)) << i << " of " << values.size();
        }
      }
    }
  }
}

TEST_P(SharedReduction, IsExactInAGroupThatMayShrink) {
  const std::uint32_t size = GetParam();
  for (const Where where : {Where::own_memory, Where::shared_memory}) {
    const auto results = on_every_rank<Floats>(sharing(size), [&](Group& group) {
      ComputedLosses none([] { return std::vector<Rank>(); });
      Group shrinking = that_may_shrink(group, none);
      const auto shared = SharedAllreduce::make(shrinking);
      const Vector vector(group, where, 300'007);
      for (int round = 0; round < 3; ++round) {
        fill(group, vector.values());
        shared->reduce({.values = vector.values()});
      }
      return vector.copy();
    });
    for (const Floats& values : results) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(values[i], sum_at(size, i)) << i;
      }
    }
  }
}

TEST_P(SharedReduction, HasTheSameBitsOnEveryRankWhateverTheFactors) {
  constexpr std::uint64_t seed = 11;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  for (const std::size_t length : {1000, 70'001}) {
    const auto results = on_every_rank<Floats>(sharing(GetParam()), [&](Group& group) {
      const auto shared = SharedAllreduce::make(group);
      Random random = Random(seed).fork("values", group.rank().value);
      const Vector vector(group, Where::shared_memory, length);
      for (float& value : vector.values()) {
        value = static_cast<float>(random.normal());
      }
      shared->reduce({.values = vector.values(), .factor = static_cast<float>(random.uniform())});
      return vector.copy();
    });
    for (const Floats& values : results) {
      EXPECT_EQ(std::memcmp(values.data(), results[0].data(), length * sizeof(float)), 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, SharedReduction, testing::Range(1U, 18U));

TEST(SharedAllreduce, GoesOnForManyRoundsOfMixedLengths) {
  constexpr std::uint32_t size = 5;
  on_every_rank<int>(sharing(size), [&](Group& group) {
    const auto shared = SharedAllreduce::make(group);
    const Vector vector(group, Where::shared_memory, 40'000);
    for (std::size_t round = 0; round < 200; ++round) {
      const auto values = vector.values().first(round % 3 == 0 ? 40'000 : 10 * round);
      fill(group, values);
      shared->reduce({.values = values});
      for (std::size_t i = 0; i < values.size(); i += 97) {
        EXPECT_EQ(values[i], sum_at(size, i)) << "round " << round;
      }
    }
    return 0;
  });
}

/// Introduces all other nodes to this one. Returns the options of a group of all `size` nodes.
Group::Options introduced(World& world, std::uint32_t rank, std::uint32_t size) {
  Group::Options options{.members = {}, .self = Rank{rank}};
  for (std::uint32_t peer = 0; peer < size; ++peer) {
    options.members.push_back(NodeId{peer});
    if (peer != rank) {
      world.transport().introduce(NodeId{peer}, sim::address_of(NodeId{peer}));
    }
  }
  return options;
}

TEST(SharedAllreduce, NamesARankThatDiesBeforeIt) {
  constexpr std::uint32_t size = 4;
  for (std::uint32_t victim = 0; victim < size; ++victim) {
    sim::Simulation simulation({.shared_memory = true});
    std::vector<std::uint32_t> named;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      simulation.add_node("rank", [&, rank](World& world) {
        Group group(world, introduced(world, rank, size));
        const auto shared = SharedAllreduce::make(group);
        const Vector vector(group, Where::shared_memory, 50'000);
        shared->reduce({.values = vector.values()});
        if (rank == victim) {
          world.sleep_for(std::chrono::hours(1));
        }
        try {
          shared->reduce({.values = vector.values()});
        } catch (const PeerLost& loss) {
          named.push_back(loss.peer().value);
        }
        world.transport().close(world.now() + std::chrono::minutes(1));
      });
    }
    simulation.at(TimePoint(std::chrono::seconds(5)), [&] { simulation.kill(NodeId{victim}); });
    simulation.run();
    // A rank that notices the death because another rank has left may name that other rank.
    EXPECT_EQ(named.size(), size - 1);
    EXPECT_THAT(named, testing::Contains(victim));
  }
}

/// At 5 s rank 2 reduces its slice. Rank 0 then has all results and waits for rank 1, which is
/// slow. At 7 s a loss is reported to rank 0; it leaves and overwrites its vector. At 13 s rank 1
/// reads this vector, and must not take its values for results.
TEST(SharedAllreduce, TakesNoResultOfARankThatLeftBeforeAllHadReadIt) {
  constexpr std::array<std::chrono::seconds, 3> looks_until{0s, 13s, 5s};
  const auto ends = on_every_rank<std::string>(sharing(3), [&](Group& group) -> std::string {
    World& world = group.world();
    const std::uint32_t rank = group.rank().value;
    const ComputedLosses::Look look = [&]() -> std::vector<Rank> {
      world.sleep_for(std::max(Duration::zero(), TimePoint(looks_until[rank]) - world.now()));
      return rank == 0 && world.now() >= TimePoint(7s) ? std::vector{Rank{2}} : std::vector<Rank>();
    };
    ComputedLosses losses(look);
    Group shrinking = that_may_shrink(group, losses);
    const auto shared = SharedAllreduce::make(shrinking);
    const Vector vector(group, Where::shared_memory, 50'000);
    fill(group, vector.values());
    if (rank == 1) {
      // Rank 2 waits for rank 1, checks for losses in the meantime, and is the last to reduce.
      world.sleep_for(550ms);
    }
    try {
      shared->reduce({.values = vector.values()});
      return "a result";
    } catch (const PeerLost& loss) {
      return loss.what();
    } catch (const ViewChanged&) {
      std::fill(vector.values().begin(), vector.values().end(), -1.0F);
      world.sleep_for(1min);
      return "another view";
    }
  });
  EXPECT_THAT(ends,
              testing::ElementsAre("another view", "worker 0 has left an allreduce before its end",
                                   "worker 0 has left an allreduce before its end"));
}

TEST(SharedAllreduce, IsNullWhereNodesShareNoMemory) {
  const auto made = on_every_rank<bool>(SimulatedGroup{.size = 3}, [](Group& group) {
    return SharedAllreduce::make(group) != nullptr;
  });
  EXPECT_THAT(made, testing::Each(false));
}

TEST(SharedAllreduce, RefusesVectorsOfUnequalLength) {
  const auto refused = on_every_rank<std::string>(sharing(2), [](Group& group) -> std::string {
    const auto shared = SharedAllreduce::make(group);
    Floats values(group.rank() == Rank{0} ? 10 : 11);
    try {
      shared->reduce({.values = values});
    } catch (const ProtocolError& error) {
      return error.what();
    }
    return "";
  });
  EXPECT_EQ(refused[0], "an allreduce of 10 values, but worker 1 passes 11");
  EXPECT_EQ(refused[1], "an allreduce of 11 values, but worker 0 passes 10");
}

}  // namespace
}  // namespace syncopate
