// Goal:   a comparison carries out each of its runs once, in a fair order, and distinguishes two
//         comparisons.
// Method: a plan of two schemes and the upper bound.
#include "cli/compare/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(ComparisonPlanTest, TriesRatesWithASeedThatNeverCounts) {
  ComparisonPlan plan = small_plan();
  plan.grid_in_virtual_time = plan.virtual_time = true;
  plan.seeds = 9999;
  const ChosenRates rates{{"ssgd", 0.2}, {"esync:pacing=paper", 0.3}, {"limit", std::nullopt}};
  for (const std::uint64_t first : {0, 1, 5}) {
    plan.common.seed = first;
    const std::uint64_t tried = plan.grid_seed();
    for (const auto& run : plan.finals(rates)) {
      ASSERT_NE(run.seed, tried) << first;
    }
  }
}

TEST(ComparisonPlanTest, RunsSeedBySeedAndTheLimitInVirtualTime) {
  const ComparisonPlan plan = small_plan();
  const ChosenRates rates{{"ssgd", 0.2}, {"esync:pacing=paper", 0.3}, {"limit", std::nullopt}};
  EXPECT_THAT(
      names_of(plan.finals(rates)),
      ElementsAre("ssgd-lr0.2-seed5", "esync+pacing=paper-lr0.3-seed5", "limit-seed5-virtual",
                  "ssgd-lr0.2-seed6", "esync+pacing=paper-lr0.3-seed6", "limit-seed6-virtual"));
}

TEST(ComparisonPlanTest, TellsHowManyRunsThereAre) {
  EXPECT_EQ(small_plan().size(), 2U + 6U);
}

TEST(ComparisonPlanTest, ARunIsToldAllThatMakesItDiffer) {
  ComparisonPlan plan = small_plan();
  plan.target = 0.8;
  const cli::Run run{.contestant = "ssgd", .learning_rate = 0.2, .seed = 6, .virtual_time = true};
  TrainConfig config = plan.config_of(run);
  EXPECT_EQ(config.seed, 6U);
  EXPECT_EQ(config.learning_rate, 0.2);
  EXPECT_TRUE(config.virtual_time);
  EXPECT_FALSE(config.target_accuracy);  // else it would not go on to its last accuracy
  plan.until_target = true;
  EXPECT_EQ(plan.config_of(run).target_accuracy, 0.8);
}

TEST(AgreementTest, NamesWhatDiffers) {
  const ComparisonPlan plan = small_plan();
  const auto agreement = agreement_of(plan, "devices");
  EXPECT_EQ(difference(agreement, agreement), "");
  EXPECT_EQ(difference(agreement, agreement_of(plan, "others")),
            "the content of the cluster file differs");
  ComparisonPlan other = plan;
  other.common.batch_size = 32;
  EXPECT_EQ(difference(agreement_of(other, "devices"), agreement),
            "batch-size is \"32\" here, but \"64\" there");
}

TEST(AgreementTest, MoreSeedsSchemesAndRatesAreTheSameComparison) {
  const ComparisonPlan plan = small_plan();
  ComparisonPlan more = plan;
  more.seeds = 9;
  more.virtual_time = true;
  more.target = 0.9;
  more.contestants.push_back({.label = "asgd", .config = {}});
  EXPECT_EQ(difference(agreement_of(more, ""), agreement_of(plan, "")), "");
  more.until_target = true;  // ends runs elsewhere
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

}  // namespace
}  // namespace syncopate::cli
