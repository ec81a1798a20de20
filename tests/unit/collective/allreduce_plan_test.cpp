// Goal:   a plan selects the algorithm from its options, hosts and facts in the documented order;
//         its costs and descriptions follow from the decision.
// Method: tables of options, hosts and facts are compared with decisions worked out by hand,
//         without a group and without messages.

#include "collective/allreduce_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "codec/codec_frame.hpp"

namespace syncopate {
namespace {

using testing::HasSubstr;

const Hosts one_host{0, 0, 0, 0};
const Hosts own_hosts{0, 1, 2, 3};
const Hosts two_hosts{0, 0, 1, 1};
const Hosts six_hosts{0, 1, 2, 3, 4, 5};

constexpr Links usual{.within = {.latency = 2e-6, .seconds_per_byte = 1e-10},
                      .between = {.latency = 50e-6, .seconds_per_byte = 8e-10},
                      .seconds_per_added_byte = 1e-10};
/// Slow links between hosts, with which an algorithm that crosses hosts only once is best.
constexpr Links far{.within = {.latency = 2e-6, .seconds_per_byte = 1e-10},
                    .between = {.latency = 50e-6, .seconds_per_byte = 1e-8},
                    .seconds_per_added_byte = 1e-10};

constexpr std::size_t short_bytes = 40;
constexpr std::size_t long_bytes = 4'000'000;

/// `requested`: the name of a reducer, or "auto".
AllreducePlan plan_with(const char* requested, const Hosts& hosts, const Links& links = usual) {
  AllreducePlan plan({.requested = find_reducer(requested)}, hosts);
  plan.set_links(links, 256 * 1024);
  return plan;
}

struct Decision {
  std::string what;
  const char* requested = "auto";
  Hosts hosts;
  Links links = usual;
  bool shares_memory = false;
  std::size_t bytes = long_bytes;
  const char* chosen = "";
};

std::vector<Decision> decisions() {
  return {
      {"shared memory before all", "auto", one_host, usual, true, long_bytes, "shm"},
      {"shared memory requested", "shm", one_host, usual, true, long_bytes, "shm"},
      {"ring requested", "ring", own_hosts, usual, false, short_bytes, "ring"},
      {"mpi requested", "mpi", own_hosts, usual, false, long_bytes, "mpi"},
      {"two-level requested", "two-level", two_hosts, usual, false, short_bytes, "two-level"},
      {"torch requested", "torch", own_hosts, usual, false, long_bytes, "torch"},
      {"torch between hosts of several", "torch", two_hosts, usual, false, long_bytes, "two-level"},
      {"torch on one host", "torch", one_host, usual, true, long_bytes, "shm"},
      {"torch on one host without shared memory", "torch", one_host, usual, false, long_bytes,
       "torch"},
      {"butterfly of 4", "butterfly", own_hosts, usual, false, long_bytes, "butterfly"},
      {"butterfly of 6", "butterfly", six_hosts, usual, false, long_bytes, "binary-blocks"},
      {"short of 4", "auto", own_hosts, usual, false, short_bytes, "tree"},
      {"long of 4", "auto", own_hosts, usual, false, long_bytes, "butterfly"},
      {"long of 6", "auto", six_hosts, usual, false, long_bytes, "ring"},
      {"far hosts", "auto", {0, 1, 0, 1, 0, 1, 0, 1}, far, false, long_bytes, "two-level"},
      {"one host without shared memory", "auto", one_host, usual, false, short_bytes, "tree"},
  };
}

TEST(AllreducePlan, DecidesAsTheTableSays) {
  for (const Decision& example : decisions()) {
    AllreducePlan plan = plan_with(example.requested, example.hosts, example.links);
    plan.set_shared_memory(example.shares_memory);
    EXPECT_EQ(plan.reducer(example.bytes).name, example.chosen) << example.what;
    EXPECT_EQ(plan.reducer(example.bytes).name, example.chosen) << example.what << ", again";
  }
}

TEST(AllreducePlan, AssumesARingInAProcessGroup) {
  const AllreduceCost ring = AllreducePlan({find_reducer("ring")}, own_hosts).cost(long_bytes);
  const AllreduceCost group = AllreducePlan({find_reducer("torch")}, own_hosts).cost(long_bytes);
  EXPECT_EQ(group.fixed, ring.fixed);
  EXPECT_EQ(group.seconds_per_byte, ring.seconds_per_byte);
}

TEST(AllreducePlan, LeavesTheLeadersToTheReducerAmongHostsThatIsRequested) {
  AllreducePlan plan({.requested = find_reducer("torch")}, two_hosts);
  EXPECT_EQ(plan.reducer_among_leaders(long_bytes).name, "torch");
}

TEST(AllreducePlan, RefusesSharedMemoryThatSomeRanksDoNotReach) {
  AllreducePlan plan({.requested = find_reducer("shm")}, own_hosts);
  try {
    plan.reducer(long_bytes);
    ADD_FAILURE() << "no ConfigError";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--aggregate shm requires that all workers share memory"));
  }
}

TEST(AllreducePlan, AsksForTheFactsThatItsDecisionTakes) {
  struct Case {
    const char* requested;
    Hosts hosts;
    bool wants_shared_memory;
    bool wants_links;
  };
  for (const Case& example : std::vector<Case>{{"auto", one_host, true, true},
                                               {"auto", own_hosts, false, true},
                                               {"shm", own_hosts, true, false},
                                               {"two-level", two_hosts, false, true},
                                               {"ring", one_host, false, false},
                                               {"torch", one_host, true, false},
                                               {"torch", two_hosts, false, false},
                                               {"mpi", own_hosts, false, false}}) {
    AllreducePlan plan({.requested = find_reducer(example.requested)}, example.hosts);
    EXPECT_EQ(plan.wants_shared_memory(), example.wants_shared_memory) << example.requested;
    EXPECT_EQ(plan.wants_links(), example.wants_links) << example.requested;
    plan.set_shared_memory(true);
    EXPECT_FALSE(plan.wants_links());
  }
}

TEST(AllreducePlan, MeasuresAgainForMuchLongerVectorsUpToALimit) {
  AllreducePlan plan({}, own_hosts);
  EXPECT_EQ(plan.probe_bytes(1000), 1000U);
  plan.set_links(usual, 1000);
  EXPECT_EQ(plan.probe_bytes(2000), std::nullopt);
  EXPECT_EQ(plan.probe_bytes(2004), 2004U);
  EXPECT_EQ(plan.probe_bytes(long_bytes), 256U * 1024);
  plan.set_links(usual, 256 * 1024);
  EXPECT_EQ(plan.probe_bytes(100 * long_bytes), std::nullopt);
  plan.forget_links();
  EXPECT_EQ(plan.probe_bytes(long_bytes), 256U * 1024);
}

TEST(AllreducePlan, DecidesAgainAfterLinksHaveChanged) {
  AllreducePlan plan = plan_with("auto", {0, 1, 0, 1, 0, 1, 0, 1}, far);
  EXPECT_EQ(plan.reducer(long_bytes).name, "two-level");
  EXPECT_EQ(plan.reducer_among_leaders(short_bytes).name, "tree");
  Links flat = far;
  flat.within = flat.between;
  plan.set_links(flat, 256 * 1024);
  EXPECT_NE(plan.reducer(long_bytes).name, "two-level");
}

TEST(AllreducePlan, CompressesWhereTheOptionsSay) {
  struct Case {
    std::string compression;
    bool compress_remote;
    Hosts hosts;
    bool compresses;
    bool among_leaders;
  };
  for (const Case& example : std::vector<Case>{{"none", false, own_hosts, false, false},
                                               {"int8", false, {0}, false, false},
                                               {"int8", false, one_host, true, false},
                                               {"int8", true, one_host, false, false},
                                               {"int8", true, own_hosts, true, false},
                                               {"int8", true, two_hosts, true, true},
                                               {"int8", false, two_hosts, true, false}}) {
    const AllreducePlan plan({.compression = Compression::parse(example.compression),
                              .compress_remote = example.compress_remote},
                             example.hosts);
    EXPECT_EQ(plan.compresses(), example.compresses) << example.compression;
    EXPECT_EQ(plan.compresses_among_leaders(), example.among_leaders) << example.compression;
  }
}

void expect_cost(AllreducePlan plan, double fixed, double whole) {
  const AllreduceCost cost = plan.cost(long_bytes);
  EXPECT_NEAR(cost.fixed, fixed, 1e-9);
  EXPECT_NEAR(cost.fixed + cost.seconds_per_byte * long_bytes, whole, 1e-9);
}

TEST(AllreducePlan, CostsFollowTheDecision) {
  const double n = long_bytes;
  AllreducePlan in_memory({}, one_host);
  in_memory.set_shared_memory(true);
  expect_cost(in_memory, 200e-6, 200e-6 + n / 10e9);
  expect_cost(AllreducePlan({}, {0}), 200e-6, 200e-6 + n / 10e9);
  expect_cost(AllreducePlan({.requested = find_reducer("mpi")}, own_hosts), 200e-6,
              200e-6 + n / 10e9);
  // A butterfly of four with the measured links: 2 log2 P α + 2 (P − 1)/P n β + (P − 1)/P n γ.
  expect_cost(plan_with("auto", own_hosts), 4 * 50e-6,
              4 * 50e-6 + 1.5 * n * 8e-10 + 0.75 * n * 1e-10);
  // The cost of a requested ring of four uses default links, not the measured ones.
  expect_cost(plan_with("ring", own_hosts, far), 6 * 50e-6,
              6 * 50e-6 + 1.5 * n / 1.25e9 + 0.75 * n / 5e9);
}

TEST(AllreducePlan, CostOfCompressedVectorsCountsTheirFrames) {
  const Compression int8 = Compression::parse("int8");
  AllreducePlan plan({.compression = int8}, own_hosts);
  plan.set_links(usual, 256 * 1024);
  const auto frame = static_cast<double>(frame_bytes(*make_codec(int8), long_bytes / 4));
  expect_cost(plan, 2 * 50e-6, 2 * 50e-6 + 1.5 * frame * 8e-10 + long_bytes / 1.5e9);
}

TEST(AllreducePlan, DescribesItsDecision) {
  EXPECT_EQ(plan_with("auto", own_hosts).describe(*find_reducer("butterfly"), 44'700'000),
            "butterfly: 4 ranks, 44.7 MB, links of 50 µs and 1.2 GB/s");
  EXPECT_EQ(plan_with("auto", two_hosts).describe(*find_reducer("two-level"), long_bytes),
            "two-level: 4 ranks, 4 MB, links of 2 µs and 10 GB/s on a host, 50 µs and 1.2 GB/s "
            "between hosts");
  EXPECT_EQ(AllreducePlan({.requested = find_reducer("ring")}, own_hosts)
                .describe(*find_reducer("ring"), 40),
            "ring: 4 ranks, 4e-05 MB, as the configuration says");
  EXPECT_EQ(AllreducePlan({}, one_host).describe(*find_reducer("shm"), long_bytes),
            "shm: 4 ranks, 4 MB, one host");
}

TEST(AllreducePlan, DescribesCompression) {
  struct Case {
    bool compress_remote;
    Hosts hosts;
    std::string description;
  };
  for (const Case& example : std::vector<Case>{
           {false, own_hosts, "int8: 4 ranks, 4 MB, links of 50 µs and 1.2 GB/s"},
           {false, one_host, "int8: 4 ranks, 4 MB, links of 2 µs and 10 GB/s"},
           {true, two_hosts,
            "int8 between hosts: 4 ranks, 4 MB, links of 2 µs and 10 GB/s on a host, 50 µs and "
            "1.2 GB/s between hosts"}}) {
    AllreducePlan plan(
        {.compression = Compression::parse("int8"), .compress_remote = example.compress_remote},
        example.hosts);
    plan.set_links(usual, 256 * 1024);
    EXPECT_EQ(plan.describe_compressed(long_bytes), example.description);
  }
}

}  // namespace
}  // namespace syncopate
