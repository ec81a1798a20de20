// Goal:   every rank gets the blocks that were sent to it, for all lengths; gather, scatter and
//         broadcast work from every root.
// Method: simulated groups of 1 to 9 ranks; each block (s, r) has another length and other bytes.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "collective/basic_collectives.hpp"
#include "tests/support/simulated_group.hpp"

namespace syncopate {
namespace {

using Bytes = std::vector<std::byte>;

/// Returns the block that rank `from` sends to rank `to`; some blocks are empty.
Bytes block(std::uint32_t from, std::uint32_t to) {
  return Bytes((7 * from + 3 * to) % 5 * 100, static_cast<std::byte>(16 * from + to));
}

class ExchangeTest : public testing::TestWithParam<std::uint32_t> {};

TEST_P(ExchangeTest, OfBlocksOfAllLengths) {
  const std::uint32_t ranks = GetParam();
  const auto received = on_every_rank<std::vector<Bytes>>(ranks, [&](Group& group) {
    std::vector<Bytes> own;
    std::vector<Bytes> places;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      own.push_back(block(group.rank().value, rank));
      places.emplace_back(block(rank, group.rank().value).size());
    }
    exchange(group, {own.begin(), own.end()}, {places.begin(), places.end()});
    return places;
  });
  for (std::uint32_t to = 0; to < ranks; ++to) {
    for (std::uint32_t from = 0; from < ranks; ++from) {
      EXPECT_EQ(received[to][from], block(from, to)) << from << " to " << to;
    }
  }
}

/// Returns ten bytes that differ for each rank.
Bytes of_rank(std::uint32_t rank) {
  return Bytes(10, static_cast<std::byte>(rank + 1));
}

/// Returns these bytes of all ranks.
Bytes of_all(std::uint32_t ranks) {
  Bytes all;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const Bytes mine = of_rank(rank);
    all.insert(all.end(), mine.begin(), mine.end());
  }
  return all;
}

TEST_P(ExchangeTest, GathersOnEveryRoot) {
  const std::uint32_t ranks = GetParam();
  for (std::uint32_t root = 0; root < ranks; ++root) {
    const auto gathered = on_every_rank<Bytes>(ranks, [&](Group& group) {
      Bytes all(group.rank().value == root ? 10 * ranks : 0);
      gather(group, of_rank(group.rank().value), all, Rank{root});
      return all;
    });
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(gathered[rank], rank == root ? of_all(ranks) : Bytes()) << rank << " of " << root;
    }
  }
}

TEST_P(ExchangeTest, ScattersFromEveryRoot) {
  const std::uint32_t ranks = GetParam();
  for (std::uint32_t root = 0; root < ranks; ++root) {
    const auto scattered = on_every_rank<Bytes>(ranks, [&](Group& group) {
      Bytes mine(10);
      scatter(group, group.rank().value == root ? of_all(ranks) : Bytes(), mine, Rank{root});
      return mine;
    });
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(scattered[rank], of_rank(rank)) << rank << " of " << root;
    }
  }
}

TEST_P(ExchangeTest, BroadcastsFromEveryRoot) {
  const std::uint32_t ranks = GetParam();
  for (std::uint32_t root = 0; root < ranks; ++root) {
    const auto results = on_every_rank<Bytes>(ranks, [&](Group& group) {
      Bytes bytes = of_rank(group.rank().value);
      broadcast(group, bytes, Rank{root});
      return bytes;
    });
    EXPECT_EQ(results, std::vector(ranks, of_rank(root))) << root;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ExchangeTest, testing::Values(1, 2, 3, 4, 7, 9));

}  // namespace
}  // namespace syncopate
