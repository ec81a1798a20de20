// Goal:   every algorithm reduces over all ranks in place and leaves the same bits on each of them,
//         for every number of ranks and every length; its weighted mean is that of the union.
// Method: each algorithm runs in the simulator with 1 to 17 ranks, two-level with several layouts
//         of hosts, at lengths around every boundary. Sums of whole numbers, which float32
//         represents exactly, must be exact; other values (seed printed) are compared with float64.

#include "collective/allreduce.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "collective/segments.hpp"
#include "tests/support/simulated_group.hpp"

namespace syncopate {
namespace {

using Floats = std::vector<float>;

struct Case {
  const char* reducer = "auto";
  std::uint32_t ranks = 1;
  std::uint32_t per_host = 1;  ///< ranks on each host
  bool in_turn = false;        ///< rank r is on host r mod the number of hosts
};

SimulatedGroup group_of(const Case& example) {
  SimulatedGroup group{.size = example.ranks};
  const std::uint32_t hosts = (example.ranks + example.per_host - 1) / example.per_host;
  for (std::uint32_t rank = 0; rank < example.ranks; ++rank) {
    group.hosts.push_back(example.in_turn ? rank % hosts : rank / example.per_host);
  }
  return group;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (std::uint32_t ranks = 1; ranks <= 17; ++ranks) {
    for (const char* const reducer : {"auto", "ring", "butterfly", "binary-blocks", "tree"}) {
      cases.push_back({reducer, ranks});
    }
    cases.push_back({"two-level", ranks, 3});
    cases.push_back({"two-level", ranks, 4, true});
    cases.push_back({"two-level", ranks, 17});
  }
  return cases;
}

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  std::string name(info.param.reducer);
  std::replace(name.begin(), name.end(), '-', '_');
  return fmt::format("{}_of_{}_by_{}{}", name, info.param.ranks, info.param.per_host,
                     info.param.in_turn ? "_in_turn" : "");
}

bool same_bits(const Floats& one, const Floats& other) {
  return one.size() == other.size() &&
         (one.empty() || std::memcmp(one.data(), other.data(), one.size() * sizeof(float)) == 0);
}

class EveryAllreduce : public testing::TestWithParam<Case> {
 protected:
  /// Runs an allreduce of the vectors that `make` returns for each rank; returns the results.
  std::vector<Floats> reduced(const std::function<Floats(std::uint32_t)>& make) {
    return on_every_rank<Floats>(group_of(GetParam()), [&](Group& group) {
      Allreduce allreduce(group, {.requested = find_reducer(GetParam().reducer)});
      Floats values = make(group.rank().value);
      allreduce.reduce(values);
      return values;
    });
  }
};

TEST_P(EveryAllreduce, IsExactForEveryLength) {
  const std::uint32_t ranks = GetParam().ranks;
  const float sum_of_ranks = static_cast<float>(ranks * (ranks - 1)) / 2;
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{7},
                                   std::size_t{16}, std::size_t{1001}, 3 * segment_values + 5}) {
    const auto results = reduced([&](std::uint32_t rank) {
      Floats values(length);
      for (std::size_t i = 0; i < length; ++i) {
        values[i] = static_cast<float>(i % 1000 + rank);
      }
      return values;
    });
    Floats expected(length);
    for (std::size_t i = 0; i < length; ++i) {
      expected[i] = static_cast<float>(ranks * (i % 1000)) + sum_of_ranks;
    }
    for (const Floats& values : results) {
      ASSERT_TRUE(same_bits(values, expected)) << length << " values";
    }
  }
}

TEST_P(EveryAllreduce, LeavesTheSameBitsOnEveryRank) {
  constexpr std::uint64_t seed = 5;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const auto results = reduced([&](std::uint32_t rank) {
    Random random = Random(seed).fork("values", rank);
    Floats values(10'007);
    for (float& value : values) {
      value = static_cast<float>(random.normal());
    }
    return values;
  });
  for (const Floats& values : results) {
    EXPECT_TRUE(same_bits(values, results[0]));
  }
}

TEST_P(EveryAllreduce, WeightedMeanIsThatOfTheUnion) {
  constexpr std::uint64_t seed = 6;
  constexpr std::size_t length = 300;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const auto value_of = [](std::uint32_t rank, std::size_t i) {
    return static_cast<float>(Random(seed).fork("value", rank * length + i).normal());
  };
  const auto weight_of = [](std::uint32_t rank) { return rank * 3.0 + 1; };
  double total = 0;
  for (std::uint32_t rank = 0; rank < GetParam().ranks; ++rank) {
    total += weight_of(rank);
  }
  const auto results = on_every_rank<Floats>(group_of(GetParam()), [&](Group& group) {
    Allreduce allreduce(group, {.requested = find_reducer(GetParam().reducer)});
    Floats values(length);
    for (std::size_t i = 0; i < length; ++i) {
      values[i] = value_of(group.rank().value, i);
    }
    allreduce.mean({.values = values, .weight = weight_of(group.rank().value)}, total);
    return values;
  });
  for (std::size_t i = 0; i < length; ++i) {
    double expected = 0;
    for (std::uint32_t rank = 0; rank < GetParam().ranks; ++rank) {
      expected += weight_of(rank) / total * double{value_of(rank, i)};
    }
    EXPECT_NEAR(results[0][i], expected, 1e-6);
  }
}

TEST_P(EveryAllreduce, IgnoresTheValuesOfARankWithoutWeight) {
  const std::uint32_t ranks = GetParam().ranks;
  if (ranks == 1) {
    return;  // at least one rank must have weight
  }
  const auto results = on_every_rank<Floats>(group_of(GetParam()), [&](Group& group) {
    Allreduce allreduce(group, {.requested = find_reducer(GetParam().reducer)});
    const bool idle = group.rank() == Rank{ranks - 1};
    Floats values(4, idle ? std::numeric_limits<float>::quiet_NaN() : 2.0F);
    allreduce.mean({.values = values, .weight = idle ? 0.0 : 5.0}, 5.0 * (ranks - 1));
    return values;
  });
  for (const Floats& values : results) {
    EXPECT_THAT(values, testing::Each(testing::FloatNear(2, 1e-6F)));
  }
}

/// Some ranks begin the next allreduce, which may use another algorithm, while others are still in
/// the previous one.
TEST_P(EveryAllreduce, FollowsAnotherAtOnce) {
  const std::uint32_t ranks = GetParam().ranks;
  const auto results = on_every_rank<Floats>(group_of(GetParam()), [&](Group& group) {
    Allreduce allreduce(group, {.requested = find_reducer(GetParam().reducer)});
    Allreduce ring(group, {.requested = find_reducer("ring")});
    Floats results;
    for (const std::size_t length : {5, 2000, 1, 700}) {
      Floats values(length, 1);
      allreduce.reduce(values);
      results.push_back(*std::max_element(values.begin(), values.end()));
      ring.reduce(values);
      results.push_back(*std::min_element(values.begin(), values.end()));
    }
    return results;
  });
  const auto once = static_cast<float>(ranks);
  for (const Floats& sums : results) {
    EXPECT_THAT(sums, testing::ElementsAre(once, once * once, once, once * once, once, once * once,
                                           once, once * once));
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, EveryAllreduce, testing::ValuesIn(all_cases()), name_of_case);

TEST(Allreduce, PicksTheSameOnEveryRankAndDescribesIt) {
  const auto descriptions = on_every_rank<std::string>(6, [](Group& group) {
    Allreduce allreduce(group, {});
    EXPECT_EQ(allreduce.description(), "");
    Floats values(1'000'000, 1);
    allreduce.reduce(values);
    EXPECT_EQ(allreduce.pick(10), find_reducer("binary-blocks"));
    return allreduce.description();
  });
  // The links have 50 µs and 1.25 GB/s; each message also has a header.
  EXPECT_THAT(descriptions, testing::Each("ring: 6 ranks, 4 MB, links of 50 µs and 1.2 GB/s"));
}

TEST(Allreduce, TakesTwoLevelsWhereHostsAreFarApart) {
  const SimulatedGroup group{
      .size = 8,
      .hosts = {0, 1, 0, 1, 0, 1, 0, 1},
      .network = {.link = {.bandwidth = 1e8}, .nic_bandwidth = 1e10},
      .within = {.bandwidth = 1e10, .latency = std::chrono::microseconds(2)}};
  const auto descriptions = on_every_rank<std::string>(group, [](Group& members) {
    Allreduce allreduce(members, {});
    Floats values(1'000'000, 1);
    allreduce.reduce(values);
    EXPECT_EQ(std::count(values.begin(), values.end(), 8.0F), 1'000'000);
    return allreduce.description();
  });
  EXPECT_THAT(descriptions,
              testing::Each("two-level: 8 ranks, 4 MB, links of 2 µs and 10 GB/s on a host, "
                            "50 µs and 0.1 GB/s between hosts"));
}

TEST(Allreduce, MeasuresNothingForARequestedAlgorithm) {
  const auto sent = on_every_rank<std::uint64_t>(4, [](Group& group) {
    Allreduce allreduce(group, {.requested = find_reducer("butterfly")});
    Floats values(1000, 1);
    allreduce.reduce(values);
    EXPECT_EQ(allreduce.description(), "butterfly: 4 ranks, 0.004 MB, as the configuration says");
    return group.transport().traffic().messages_sent;
  });
  EXPECT_THAT(sent, testing::Each(4U));
}

TEST(AllreduceByMpi, IsRefusedWhereTheTransportIsAnother) {
  const auto answers = on_every_rank<std::string>(group_of({.ranks = 3}), [](Group& group) {
    Allreduce allreduce(group, {.requested = find_reducer("mpi")});
    Floats values(10);
    try {
      allreduce.reduce(values);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("a result");
  });
  EXPECT_THAT(
      answers,
      testing::Each("--aggregate mpi requires --transport mpi; choose another aggregate or auto"));
}

}  // namespace
}  // namespace syncopate
