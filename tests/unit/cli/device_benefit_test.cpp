// Goal:   the benefit of a device is the time to the target without it over that with it: by seed,
//         with the devices in the order of their speeds.
// Method: times by hand, of a cluster whose fastest device is not the first.

#include "cli/compare/device_benefit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::cli {
namespace {

using testing::HasSubstr;
using testing::Optional;

ClusterFile three_devices() {
  ClusterFile cluster;
  for (const auto& [name, milliseconds] :
       {std::pair{"middle", 40}, std::pair{"slow", 400}, std::pair{"quick", 20}}) {
    cluster.devices.push_back(
        {.name = name, .batch_time = std::chrono::milliseconds(milliseconds), .batch_size = {}});
  }
  return cluster;
}

ComparisonPlan with_prefixes() {
  ComparisonPlan plan;
  plan.contestants = {{.label = "esync", .config = {}},
                      {.label = "limit", .config = {}, .is_limit = true},
                      {.label = "esync-of-1", .config = {}, .fastest = 1, .prefix_of = "esync"},
                      {.label = "esync-of-2", .config = {}, .fastest = 2, .prefix_of = "esync"}};
  return plan;
}

TEST(DeviceBenefitTest, IsTheTimeWithoutADeviceOverTheTimeWithIt) {
  const TimesToTarget times{{"esync", {2.0, 4.0, 5.0}},
                            {"limit", {1.0, 1.0, 1.0}},
                            {"esync-of-1", {9.0, 12.0, {}}},
                            {"esync-of-2", {3.0, 6.0, 4.0}}};
  const auto benefits = benefits_of(with_prefixes(), three_devices(), times);
  ASSERT_EQ(benefits.size(), 3U);
  EXPECT_EQ(benefits[0].device, "quick");
  EXPECT_EQ(benefits[0].time.value().median, 12) << "a seed that did not reach it is the last";
  EXPECT_FALSE(benefits[0].median);
  EXPECT_EQ(benefits[1].device, "middle");
  EXPECT_THAT(benefits[1].median, Optional(3.0)) << "of 3, 2 and infinity";
  EXPECT_THAT(benefits[1].worst, Optional(2.0));
  EXPECT_EQ(benefits[2].device, "slow");
  EXPECT_THAT(benefits[2].median, Optional(1.5)) << "of 1.5, 1.5 and 0.8";
  EXPECT_THAT(benefits[2].worst, Optional(0.8));
}

TEST(DeviceBenefitTest, IsNothingWhereASeedReachesTheTargetOnlyWithoutTheDevice) {
  const TimesToTarget times{
      {"esync", {{}}}, {"limit", {1.0}}, {"esync-of-1", {{}}}, {"esync-of-2", {3.0}}};
  const auto benefits = benefits_of(with_prefixes(), three_devices(), times);
  EXPECT_THAT(benefits[2].worst, Optional(0.0));
  EXPECT_FALSE(benefits[2].time);
  const TitledTable table = benefit_table(benefits);
  EXPECT_THAT(table.table.lines().back(), HasSubstr("0.00"));
  EXPECT_TRUE(to_json(benefits)[2].at("time_to_target_seconds").is_null());
}

}  // namespace
}  // namespace syncopate::cli
