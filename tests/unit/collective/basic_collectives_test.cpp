// Goal:   allgather, broadcast and barrier keep their contracts for every number of ranks, and
//         their errors name a rank that does not take part.
// Method: simulated groups of 1 to 17 ranks; a rank that sleeps past every deadline.

#include "collective/basic_collectives.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "membership/member_link.hpp"
#include "tests/support/simulated_group.hpp"

namespace syncopate {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

class Collectives : public testing::TestWithParam<std::uint32_t> {};

TEST_P(Collectives, AllgatherGivesEveryRankTheBlocksOfAll) {
  using Blocks = std::vector<std::uint64_t>;
  const auto results = on_every_rank<Blocks>(GetParam(), [](Group& group) {
    const std::uint64_t mine = 100 + group.rank().value;
    Blocks all(group.size());
    allgather(group, std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    return all;
  });
  Blocks expected(GetParam());
  std::iota(expected.begin(), expected.end(), 100U);
  EXPECT_THAT(results, testing::Each(expected));
}

TEST_P(Collectives, BroadcastGivesEveryRankTheValuesOfRankZero) {
  const auto results = on_every_rank<std::vector<float>>(GetParam(), [](Group& group) {
    std::vector<float> values(1001, static_cast<float>(group.rank().value + 7));
    broadcast(group, values);
    return values;
  });
  for (const auto& values : results) {
    EXPECT_THAT(values, testing::Each(7.0F));
  }
}

TEST_P(Collectives, NoRankPassesABarrierBeforeTheLastArrives) {
  const auto left_at = on_every_rank<TimePoint>(GetParam(), [](Group& group) {
    group.world().sleep_for(std::chrono::seconds(group.rank().value));
    barrier(group);
    return group.world().now();
  });
  for (const TimePoint moment : left_at) {
    EXPECT_GE(moment, TimePoint(std::chrono::seconds(GetParam() - 1)));
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, testing::Values(1, 2, 3, 4, 7, 8, 17));

/// Runs a collective on four ranks, which those in `late` do not call. Returns for each rank the
/// missing ranks that its error names.
std::vector<std::vector<std::uint32_t>> missing_in(const std::function<void(Group&)>& collective,
                                                   const std::vector<Rank>& late) {
  return on_every_rank<std::vector<std::uint32_t>>(4, [&](Group& group) {
    std::vector<std::uint32_t> ranks;
    if (std::ranges::count(late, group.rank()) > 0) {
      group.world().sleep_for(std::chrono::hours(1));
      return ranks;
    }
    try {
      collective(group);
    } catch (const RanksMissing& error) {
      for (const Rank rank : error.wait().ranks) {
        ranks.push_back(rank.value);
      }
      EXPECT_NEAR(to_seconds(error.wait().waited), 60, 0.1);
    }
    group.world().sleep_for(std::chrono::hours(2));  // an earlier end would be a loss to the others
    return ranks;
  });
}

TEST(Allgather, NamesTheRanksThatDoNotCome) {
  const auto missing = missing_in([](Group& group) { barrier(group); }, {Rank{1}, Rank{2}});
  EXPECT_THAT(missing[0], UnorderedElementsAre(1, 2));
  EXPECT_THAT(missing[3], UnorderedElementsAre(1, 2));
}

TEST(Broadcast, NamesThoseOnTheWayFromTheRoot) {
  const auto missing = missing_in(
      [](Group& group) {
        std::vector<float> values(3);
        broadcast(group, values);
      },
      {Rank{0}});
  EXPECT_THAT(missing[1], ElementsAre(0));
  EXPECT_THAT(missing[2], ElementsAre(0));
  EXPECT_THAT(missing[3], ElementsAre(0, 1));
}

}  // namespace
}  // namespace syncopate
