// Goal:   the cost of each algorithm agrees with its formula and with the virtual time of the
//         simulator; the model picks the cheapest algorithm.
// Method: values computed by hand; the virtual time, in which additions take no time, of every
//         algorithm with 2 to 17 ranks and short and long vectors, within a tolerance for
//         contention.

#include "collective/cost_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "collective/allreduce.hpp"
#include "collective/basic_collectives.hpp"
#include "collective/measure_links.hpp"
#include "tests/support/simulated_group.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

/// Returns hosts so that every rank is on its own host.
std::vector<std::uint32_t> apart(std::uint32_t ranks) {
  std::vector<std::uint32_t> hosts(ranks);
  std::iota(hosts.begin(), hosts.end(), 0U);
  return hosts;
}

/// Links with α = 1 s, β = 1 ms and γ = 0.1 ms; between hosts α and β are ten times as large.
constexpr Link slow{.latency = 10, .seconds_per_byte = 0.01};
constexpr Link quick{.latency = 1, .seconds_per_byte = 0.001};
constexpr Links links{.within = quick, .between = slow, .seconds_per_added_byte = 0.0001};
constexpr Links alike{.within = quick, .between = quick, .seconds_per_added_byte = 0.0001};

void expect_cost(const CostModel& model, const std::string& reducer, double seconds) {
  EXPECT_NEAR(model.seconds(*find_reducer(reducer), 1000).value(), seconds, 1e-9) << reducer;
}

TEST(CostModel, OfFourRanks) {
  const CostModel model(apart(4), alike);
  expect_cost(model, "ring", 6 + 1.5 + 0.075);
  expect_cost(model, "butterfly", 4 + 1.5 + 0.075);
  expect_cost(model, "binary-blocks", 4 + 1.5 + 0.075);
  expect_cost(model, "tree", 2 + 2 + 0.2);
  EXPECT_EQ(model.seconds(*find_reducer("two-level"), 1000), std::nullopt);
}

TEST(CostModel, OfFiveRanks) {
  const CostModel model(apart(5), alike);
  expect_cost(model, "ring", 8 + 1.6 + 0.08);
  EXPECT_EQ(model.seconds(*find_reducer("butterfly"), 1000), std::nullopt);
  // The block of four ends its reduction after 2 α + 0.75 n (β + γ), after the values of the fifth
  // rank have arrived. Each of the four sends a quarter to the fifth rank before they gather; that
  // takes 2 α + n β.
  expect_cost(model, "binary-blocks", (2 + 0.75 + 0.075) + (2 + 0.25 + 0.75));
  expect_cost(model, "tree", (2 + 2 + 0.2) + (2 + 2 + 0.1));
}

TEST(CostModel, OfTwoHosts) {
  const CostModel model({0, 0, 0, 1}, links);
  // In a ring one message in each step leaves each host.
  expect_cost(model, "ring", 6 * 10 + 1.5 * 10 + 0.075);
  // In the first step ranks 0 and 1 exchange within their host, and ranks 2 and 3 between hosts. In
  // the next step only the message of rank 1 leaves host 0.
  expect_cost(model, "butterfly", 4 * 10 + 1.5 * 10 + 0.075);
  // Two steps within the host before and after, and between the two leaders the cheapest reducer,
  // a tree of one step.
  expect_cost(model, "two-level", 2 * (2 * (1 + 1) + 0.1) + (10 + 10 + 0.1));
}

TEST(CostModel, OfRanksThatShareANetworkCard) {
  const CostModel model({0, 0, 1, 1}, links);
  // In the second step both messages of a host leave it at once; each has a quarter of the vector.
  const double one_way = (1 + 0.5) + (10 + 0.25 * 2 * 10);
  expect_cost(model, "butterfly", 2 * one_way + 0.075);
}

std::string_view cheapest(std::uint32_t ranks, double bytes) {
  const Links usual{.within = {},
                    .between = {.latency = 50e-6, .seconds_per_byte = 1 / 1.25e9},
                    .seconds_per_added_byte = 1 / 10e9};
  return CostModel(apart(ranks), usual).cheapest(bytes).name;
}

TEST(CostModel, TheCheapestDependsOnLengthAndRanks) {
  EXPECT_EQ(cheapest(2, 4), "tree");
  EXPECT_EQ(cheapest(8, 4e3), "tree");
  EXPECT_EQ(cheapest(8, 4e7), "butterfly");
  EXPECT_EQ(cheapest(7, 4e7), "ring");
  EXPECT_EQ(cheapest(17, 4e5), "binary-blocks");
}

/// Uses the lengths in docs/how-it-works/collectives.md.
TEST(CostModel, ChangesTheCheapestAtTheDocumentedLengths) {
  EXPECT_EQ(cheapest(8, 115e3), "tree");
  EXPECT_EQ(cheapest(8, 130e3), "butterfly");
  EXPECT_EQ(cheapest(7, 380e3), "binary-blocks");
  EXPECT_EQ(cheapest(7, 420e3), "ring");
}

/// Returns the seconds of an allreduce in the simulator, until the last rank ends.
double simulated(std::uint32_t ranks, const std::string& reducer, std::size_t values) {
  const auto ends = on_every_rank<TimePoint>(ranks, [&](Group& group) {
    group.world().sleep_for(1s);  // all ranks begin together, after all connections exist
    std::vector<float> vector(values, 1);
    Allreduce(group, {.requested = find_reducer(reducer)}).reduce(vector);
    return group.world().now();
  });
  return to_seconds(*std::max_element(ends.begin(), ends.end()) - TimePoint(1s));
}

/// Returns the largest allowed ratio of model and simulator. If ranks do different work, those that
/// are ahead send messages early, which delay at a network card the messages that others wait for.
double tolerance(std::uint32_t ranks, const std::string& reducer) {
  if (reducer == "ring" || std::has_single_bit(ranks)) {
    return 1.1;
  }
  return reducer == "binary-blocks" ? 1.25 : 1.6;
}

void expect_simulated_time(std::uint32_t ranks, const std::string& reducer, std::size_t values) {
  const Links profile{.within = {},
                      .between = {.latency = 50e-6, .seconds_per_byte = 1 / 1.25e9},
                      .seconds_per_added_byte = 0};
  const auto cost = CostModel(apart(ranks), profile)
                        .seconds(*find_reducer(reducer), 4.0 * static_cast<double>(values));
  if (!cost) {
    EXPECT_EQ(reducer, "butterfly");
    return;
  }
  const double ratio = *cost / simulated(ranks, reducer, values);
  EXPECT_LT(std::max(ratio, 1 / ratio), tolerance(ranks, reducer))
      << reducer << " of " << ranks << " ranks, " << values << " values";
}

TEST(CostModel, AgreesWithTheSimulator) {
  for (std::uint32_t ranks = 2; ranks <= 17; ++ranks) {
    for (const std::size_t values : {100, 100'000, 600'000}) {
      for (const char* const reducer : {"ring", "butterfly", "binary-blocks", "tree"}) {
        expect_simulated_time(ranks, reducer, values);
      }
    }
  }
}

TEST(MeasureLinks, FindsWhatTheLinksAre) {
  const SimulatedGroup group{
      .size = 5,
      .hosts = {0, 0, 1, 1, 1},
      .network = {.link = {.bandwidth = 1e8, .latency = 300us}, .nic_bandwidth = 1e10},
      .within = {.bandwidth = 2e9, .latency = 5us}};
  const auto measured = on_every_rank<Links>(group, [](Group& members) {
    members.world().sleep_for(members.rank().value * 7ms);  // ranks start at different times
    return measure_links(members, 256 * 1024);
  });
  EXPECT_THAT(measured, testing::Each(measured[0]));
  EXPECT_NEAR(measured[0].within.latency, 5e-6, 1e-6);
  EXPECT_NEAR(measured[0].within.seconds_per_byte * 2e9, 1, 0.01);
  EXPECT_NEAR(measured[0].between.latency, 300e-6, 1e-6);
  EXPECT_NEAR(measured[0].between.seconds_per_byte * 1e8, 1, 0.01);
  EXPECT_EQ(measured[0].seconds_per_added_byte, 0);
}

TEST(BestBuckets, BalanceTheLastOneAgainstTheCostOfEach) {
  // The bytes take 100 ms and each bucket 1 ms more. Ten buckets cost 10 ms, and the last one,
  // which cannot overlap, takes as long.
  const AllreduceCost cost{.fixed = 1e-3, .seconds_per_byte = 1e-9};
  EXPECT_EQ(best_buckets(cost, 1e8, 1 << 20), 10U);
  const auto total = [&](double buckets) { return buckets * cost.fixed + 0.1 / buckets; };
  for (double other = 1; other < 30; ++other) {
    EXPECT_LE(total(10), total(other));
  }
}

TEST(BestBuckets, AreNotShorterThanTheLeast) {
  const AllreduceCost cheap{.fixed = 1e-9, .seconds_per_byte = 1e-9};
  EXPECT_EQ(best_buckets(cheap, 1e6, 250e3), 4U);
  EXPECT_EQ(best_buckets(cheap, 1e6, 251e3), 3U);
  EXPECT_EQ(best_buckets(cheap, 1e6, 2e6), 1U);
  const AllreduceCost expensive{.fixed = 1, .seconds_per_byte = 1e-9};
  EXPECT_EQ(best_buckets(expensive, 1e6, 1), 1U);
}

}  // namespace
}  // namespace syncopate
