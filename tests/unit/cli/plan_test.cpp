// Goal:   a comparison executes each of its runs once, in a fair order, and notices if its folder
//         belongs to another comparison.
// Method: a plan of two schemes and the upper bound.
#include "cli/compare/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.hpp"
#include "tests/support/config_options.hpp"

namespace syncopate::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ComparisonPlan small_plan() {
  ComparisonPlan plan;
  plan.common.seed = 5;
  plan.seeds = 2;
  plan.contestants = {{.label = "ssgd", .config = {}, .learning_rates = {0.1, 0.2}},
                      {.label = "esync:pacing=paper", .config = {}, .learning_rates = {0.3}},
                      {.label = "limit", .config = {}, .learning_rates = {0.1}, .is_limit = true}};
  return plan;
}

std::vector<std::string> names_of(const std::vector<Run>& runs) {
  std::vector<std::string> names;
  for (const Run& run : runs) {
    names.push_back(run.name());
  }
  return names;
}

TEST(ComparisonPlanTest, TriesEachRateWhereThereAreSeveral) {
  ComparisonPlan plan = small_plan();
  EXPECT_THAT(names_of(plan.grid()), ElementsAre("ssgd-lr0.1-seed4", "ssgd-lr0.2-seed4"));
  plan.grid_in_virtual_time = true;
  EXPECT_THAT(names_of(plan.grid()),
              ElementsAre("ssgd-lr0.1-seed4-virtual", "ssgd-lr0.2-seed4-virtual"));
}

TEST(ComparisonPlanTest, TriesEachBatchSizeWithEachRate) {
  ComparisonPlan plan = small_plan();
  plan.contestants[0].batch_sizes = {16, 64};
  plan.contestants[1].batch_sizes = {32};
  EXPECT_THAT(names_of(plan.grid()), ElementsAre("ssgd-b16-lr0.1-seed4", "ssgd-b16-lr0.2-seed4",
                                                 "ssgd-b64-lr0.1-seed4", "ssgd-b64-lr0.2-seed4"));
  EXPECT_EQ(plan.contestants[1].grid(), std::vector{(GridPoint{0.3, 32})});
  plan.contestants[0].learning_rates.clear();
  EXPECT_THAT(names_of(plan.grid()), ElementsAre("ssgd-b16-seed4", "ssgd-b64-seed4"));
}

TEST(ComparisonPlanTest, TriesRatesWithASeedThatNeverCounts) {
  ComparisonPlan plan = small_plan();
  plan.grid_in_virtual_time = plan.virtual_time = true;
  plan.seeds = 9999;
  const ChosenPoints points{{"ssgd", {0.2}}, {"esync:pacing=paper", {0.3}}, {"limit", {}}};
  for (const std::uint64_t first : {0, 1, 5}) {
    plan.common.seed = first;
    const std::uint64_t tried = plan.grid_seed();
    for (const auto& run : plan.finals(points)) {
      ASSERT_NE(run.seed, tried) << first;
    }
  }
}

TEST(ComparisonPlanTest, RunsSeedBySeedAndTheLimitInVirtualTime) {
  const ComparisonPlan plan = small_plan();
  const ChosenPoints points{{"ssgd", {0.2}}, {"esync:pacing=paper", {0.3}}, {"limit", {}}};
  EXPECT_THAT(
      names_of(plan.finals(points)),
      ElementsAre("ssgd-lr0.2-seed5", "esync+pacing=paper-lr0.3-seed5", "limit-seed5-virtual",
                  "ssgd-lr0.2-seed6", "esync+pacing=paper-lr0.3-seed6", "limit-seed6-virtual"));
}

TEST(ComparisonPlanTest, TellsHowManyRunsThereAre) {
  EXPECT_EQ(small_plan().size(), 2U + 6U);
}

TEST(ComparisonPlanTest, ARunIsToldAllThatMakesItDiffer) {
  ComparisonPlan plan = small_plan();
  plan.target = 0.8;
  const cli::Run run{.contestant = "ssgd",
                     .point = {.learning_rate = 0.2, .batch_size = 16},
                     .seed = 6,
                     .virtual_time = true};
  TrainConfig config = plan.config_of(run);
  EXPECT_EQ(config.seed, 6U);
  EXPECT_EQ(config.learning_rate, 0.2);
  EXPECT_EQ(config.batch_size, 16U);
  EXPECT_TRUE(config.virtual_time);
  EXPECT_FALSE(config.target_accuracy);  // a target would end the run before its last evaluation
  plan.until_target = true;
  EXPECT_EQ(plan.config_of(run).target_accuracy, 0.8);
}

TEST(AgreementTest, NamesWhatDiffers) {
  ComparisonPlan plan = small_plan();
  plan.common.batch_size = 64;
  const auto agreement = agreement_of(plan, "devices");
  EXPECT_EQ(difference(agreement, agreement), "");
  EXPECT_EQ(difference(agreement, agreement_of(plan, "others")),
            "the content of the cluster file differs");
  ComparisonPlan other = plan;
  other.common.batch_size = 32;
  EXPECT_EQ(difference(agreement_of(other, "devices"), agreement),
            "batch-size is \"32\" here, but \"64\" there");
}

TEST(AgreementTest, IsThatOfAnEarlierVersionWhereTheClusterGivesTheWorkers) {
  EXPECT_EQ(agreement_of(small_plan(), "devices").at("workers"), "0");
}

TEST(AgreementTest, MoreSeedsSchemesAndRatesAreTheSameComparison) {
  const ComparisonPlan plan = small_plan();
  ComparisonPlan more = plan;
  more.seeds = 9;
  more.virtual_time = true;
  more.target = 0.9;
  more.contestants.push_back({.label = "asgd", .config = {}});
  EXPECT_EQ(difference(agreement_of(more, ""), agreement_of(plan, "")), "");
  more.until_target = true;  // lets runs end earlier
  EXPECT_THAT(difference(agreement_of(more, ""), agreement_of(plan, "")),
              HasSubstr("target-accuracy"));
}

TEST(LimitTest, IsOneDeviceOfTheSummedSpeed) {
  CommonOptions common;
  common.config.scheme = "esync";
  common.config.workers = 3;
  const Contestant limit = limit_of(common, "/x/limit.toml");
  EXPECT_TRUE(limit.is_limit);
  EXPECT_EQ(limit.config.scheme, "local");
  EXPECT_EQ(limit.config.cluster, "/x/limit.toml");
  EXPECT_EQ(limit.config.workers, 0U);
  ClusterFile cluster{.name = "two", .devices = {}, .pauses = {}, .link = {}};
  cluster.devices.push_back(
      {.name = "a", .batch_time = std::chrono::milliseconds(32), .batch_size = {}});
  cluster.devices.push_back(
      {.name = "b", .batch_time = std::chrono::milliseconds(64), .batch_size = {}});
  EXPECT_THAT(one_device_file(cluster), HasSubstr("samples_per_second = 3000"));
}

ClusterFile cluster_of(const std::vector<int>& milliseconds) {
  ClusterFile cluster{.name = "some", .devices = {}, .pauses = {}, .link = {}};
  for (const int one : milliseconds) {
    cluster.devices.push_back({.name = "d" + std::to_string(one),
                               .batch_time = std::chrono::milliseconds(one),
                               .batch_size = {}});
  }
  return cluster;
}

TEST(FastDevicesTest, HaveHalfOfTheFastestSpeedOrMore) {
  EXPECT_EQ(fast_devices_of(cluster_of({20, 40, 41, 80})), 2U);
  EXPECT_EQ(fast_devices_of(cluster_of({20, 20, 40})), 3U);
}

TEST(FastDevicesTest, AreThoseOfThatNumberInTheirOrder) {
  const ClusterFile fast = fastest_of(cluster_of({80, 20, 41, 20, 40}), 3);
  ASSERT_EQ(fast.devices.size(), 3U);
  EXPECT_EQ(fast.devices[0].name, "d20");
  EXPECT_EQ(fast.devices[1].name, "d20");
  EXPECT_EQ(fast.devices[2].name, "d40");
  EXPECT_THAT(by_speed(cluster_of({80, 20, 41, 20, 40}), 5), ElementsAre(1, 3, 4, 2, 0));
}

TEST(FastDevicesTest, AreAClusterFileThatIsReadBack) {
  ClusterFile cluster = cluster_of({30, 3500});
  cluster.devices[0].jitter = 0.05;
  cluster.devices[0].batch_size = 128;
  cluster.pauses =
      PauseProfile{.every = std::chrono::seconds(60), .lasting = std::chrono::seconds(30)};
  cluster.link.bandwidth = 1e8;
  const auto file = std::filesystem::temp_directory_path() /
                    ("syncopate-fast-" + std::to_string(::getpid()) + ".toml");
  write_file(file, cluster_file_of(fastest_of(cluster, 1)));
  const ClusterFile read = read_cluster_file(file);
  std::filesystem::remove(file);
  ASSERT_EQ(read.devices.size(), 1U);
  EXPECT_EQ(read.name, "fastest-1");
  EXPECT_EQ(read.devices[0].name, "d30");
  EXPECT_NEAR(read.devices[0].samples_per_second(), 64 / 0.03, 1e-3);
  EXPECT_EQ(read.devices[0].jitter, 0.05);
  EXPECT_EQ(read.devices[0].batch_size, 128U);
  EXPECT_EQ(read.pauses->every, std::chrono::seconds(60));
  EXPECT_EQ(read.link.bandwidth, 1e8);
}

TEST(FastDevicesTest, RunABaseline) {
  CommonOptions common;
  common.config.scheme = "esync";
  common.learning_rates = {0.1, 0.2};
  common.batch_sizes = {16, 64};
  const Contestant fast = on_fastest(baseline_of(baseline_scheme(), common), 1,
                                     cluster_of({20, 80}), "/x/fastest-1.toml");
  EXPECT_EQ(fast.label, "ssgd");
  EXPECT_EQ(fast.config.scheme, "ssgd");
  EXPECT_EQ(fast.config.cluster, "/x/fastest-1.toml");
  EXPECT_EQ(fast.grid().size(), 4U);  // it searches for its own best learning rate and batch size
  EXPECT_EQ(fast.fastest, 1U);
}

TEST(FastDevicesTest, HaveTheirOwnSharesAndDevicesAndNoServer) {
  CommonOptions common;
  common.config.shares = {2, 1, 3};
  common.config.device = "cuda:0,cpu,cuda:1";
  common.config.servers = 2;
  const Contestant fast = on_fastest(baseline_of(baseline_scheme(), common), 2,
                                     cluster_of({20, 80, 40}), "/x/fastest-2.toml");
  EXPECT_THAT(fast.config.shares, ElementsAre(2, 3));
  EXPECT_EQ(fast.config.device, "cuda:0,cuda:1");
  EXPECT_EQ(fast.config.servers, 0U);
  common.config.device = "cpu";
  common.config.shares.clear();
  set(common.config, "aggregate", "server");  // then the baseline has servers, too
  const Contestant with_server = on_fastest(baseline_of(baseline_scheme(), common), 2,
                                            cluster_of({20, 80, 40}), "/x/fastest-2.toml");
  EXPECT_EQ(with_server.config.device, "cpu");
  EXPECT_THAT(with_server.config.shares, testing::IsEmpty());
  EXPECT_EQ(with_server.config.servers, 2U);
}

TEST(LimitTest, IsAcceptedWithOptionsThatOneDeviceCannotHave) {
  CommonOptions common;
  common.config.scheme = "esync";
  common.config.shares = {2, 1};
  common.config.device = "cpu,cuda:1";
  common.config.weights = Weights::data;
  set(common.config, "compress", "int8");
  common.config.compress_remote = true;
  const Contestant limit = limit_of(common, "/x/limit.toml");
  EXPECT_EQ(limit.config.device, "cpu");
  EXPECT_FALSE(limit.config.compress);
  const TrainConfig resolved =
      resolve_config(limit.config, {.devices = 1, .usual_learning_rate = {}, .time = ""});
  EXPECT_EQ(resolved.workers, 1U);
}

}  // namespace
}  // namespace syncopate::cli
