// Goal:   the figures of a comparison are those that the page on measuring defines.
// Method: summaries with figures worked out by hand.
#include "cli/compare/figures.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.hpp"

namespace syncopate::cli {
namespace {

using testing::ElementsAre;

using Json = nlohmann::ordered_json;

Json summary_with(const std::vector<double>& accuracies) {
  Json evaluations = Json::array();
  for (std::size_t i = 0; i < accuracies.size(); ++i) {
    evaluations.push_back({{"samples", 100 * (i + 1)},
                           {"training_seconds", 10.0 * static_cast<double>(i + 1)},
                           {"accuracy", accuracies[i]}});
  }
  const auto worker = [](const char* device, double computing) {
    return Json{{"device", device},
                {"throughput", 100},
                {"computing_time_ratio", computing},
                {"communication_ratio", 0.01},
                {"wait_ratio", 0.2}};
  };
  return {{"accuracy", accuracies.empty() ? Json(nullptr) : Json(accuracies.back())},
          {"learning_rate", 0.1},
          {"training_seconds", 40},
          {"samples", 1000},
          {"throughput", 25},
          {"cluster_efficiency", 0.5},
          {"traffic_bytes", 5000},
          {"local_bytes", 700},
          {"staleness", {{"median", 1}, {"p99", 4}, {"max", 9}}},
          {"workers", {worker("fast", 0.4), worker("slow", 0.9)}},
          {"evaluations", evaluations}};
}

RunFigures run_of(std::optional<double> time, std::optional<double> accuracy, double rate = 0.1) {
  RunFigures run = figures_of(summary_with({}), {});
  run.time_to_target = time;
  run.accuracy = accuracy;
  run.learning_rate = rate;
  return run;
}

TEST(MedianTest, IsTheMiddleOrTheMeanOfTwo) {
  EXPECT_FALSE(median_of({}));
  EXPECT_EQ(median_of({3, 1, 2}), 2);
  EXPECT_EQ(median_of({4, 1, 2, 3}), 2.5);
}

TEST(MeanTest, DeviatesByTheSample) {
  EXPECT_FALSE(mean_of({}));
  EXPECT_EQ(mean_of({7})->deviation, 0);
  const auto mean = mean_of({2, 4, 6});
  EXPECT_EQ(mean->mean, 4);
  EXPECT_EQ(mean->deviation, 2);  // the square root of (4 + 0 + 4) / 2
}

TEST(SpreadTest, CountsWhatWasNotReachedAsLaterThanAll) {
  EXPECT_FALSE(spread_of({}));
  EXPECT_FALSE(spread_of({1, std::nullopt, std::nullopt}));
  EXPECT_FALSE(spread_of({1, std::nullopt}));
  const auto spread = spread_of({3, std::nullopt, 1});
  EXPECT_EQ(spread->median, 3);
  EXPECT_EQ(spread->least, 1);
  EXPECT_EQ(spread->most, 3);
}

TEST(FiguresTest, TheTargetIsReachedWhereTheNextTestConfirmsIt) {
  EXPECT_EQ(figures_of(summary_with({0.5, 0.8, 0.7, 0.8, 0.9}), 0.8).time_to_target, 40);
  EXPECT_FALSE(figures_of(summary_with({0.5, 0.8, 0.7}), 0.8).time_to_target);
  EXPECT_FALSE(figures_of(summary_with({0.8, 0.8}), {}).time_to_target);
}

TEST(FiguresTest, ReadsASummary) {
  const RunFigures run = figures_of(summary_with({0.5, 0.75}), 0.8);
  EXPECT_EQ(run.accuracy, 0.75);
  EXPECT_EQ(run.totals.at("exchanged_bytes"), 5700) << "of an older version: the sum of its parts";
  EXPECT_EQ(run.totals.at("local_bytes"), 700);
  EXPECT_EQ(run.cluster_efficiency, 0.5);
  EXPECT_EQ(run.p99_staleness, 4);
  ASSERT_EQ(run.devices.size(), 2U);
  EXPECT_EQ(run.devices[1].name, "slow");
  EXPECT_EQ(run.devices[1].computing, 0.9);
  Json damaged = summary_with({});
  damaged.erase("workers");
  EXPECT_THROW(figures_of(damaged, {}), DataError);
}

TEST(FiguresOverTest, TakesMediansOfSoundRunsAndTheMeanAccuracy) {
  const RunFigures diverged{.learning_rate = 0.1};
  RunFigures quick = run_of(10, 0.8);
  quick.throughput = 75;
  const ContestantFigures all = figures_over("x", {run_of(30, 0.6), diverged, quick});
  EXPECT_EQ(all.runs, 3U);
  EXPECT_EQ(all.reached, 2U);
  EXPECT_EQ(all.time_to_target->median, 30);
  EXPECT_NEAR(all.accuracy->mean, 0.7, 1e-12);
  EXPECT_EQ(all.throughput, 50);
  EXPECT_EQ(all.totals_per_sample.at("exchanged_bytes"), 5.7);
  EXPECT_EQ(all.totals.at("local_bytes"), 700);
  const auto computing = range_of(all.devices, &DeviceFigures::computing);
  EXPECT_EQ(computing->least, 0.4);
  EXPECT_EQ(computing->most, 0.9);
}

TEST(FiguresOverTest, BytesAreOverTheSamplesOfTheirSession) {
  Json resumed = summary_with({});
  resumed["exchanged_bytes"] = 6000;
  resumed["workers"][0]["samples"] = 60;  // this session trained on the last 100 of 1,000 samples
  resumed["workers"][1]["samples"] = 40;
  const auto per_sample = [&] {
    return figures_over("x", {figures_of(resumed, {})}).totals_per_sample.at("exchanged_bytes");
  };
  EXPECT_EQ(per_sample(), 60);
  resumed["workers"][0]["samples"] = 1200;  // never resumed; some gradients were dropped
  EXPECT_EQ(per_sample(), 6);
}

TEST(FiguresOverTest, KeepsTheRateOfRunsThatKnowIt) {
  const ContestantFigures figures = figures_over("x", {run_of(10, 0.8), RunFigures{}});
  EXPECT_EQ(figures.learning_rate, 0.1);
  EXPECT_EQ(figures.tested, 1U);
}

TEST(FiguresOverTest, OfRunsThatAllDivergedNothingIsKnown) {
  const ContestantFigures none = figures_over("x", {{.learning_rate = 0.1}});
  EXPECT_EQ(none.reached, 0U);
  EXPECT_FALSE(none.accuracy || none.time_to_target || none.throughput);
  EXPECT_FALSE(range_of(none.devices, &DeviceFigures::wait));
}

TEST(RelateTest, SpeedUpIsOverSsgdAndTheDistanceToTheLimit) {
  std::vector<ContestantFigures> all{
      figures_over("ssgd", {run_of(60, 0.8)}), figures_over("esync", {run_of(4, 0.8)}),
      figures_over("asgd", {run_of({}, 0.8)}), figures_over("limit", {run_of(3, 0.8)})};
  relate(all);
  EXPECT_EQ(all[0].speed_up, 1);
  EXPECT_EQ(all[1].speed_up, 15);
  EXPECT_EQ(all[1].distance_to_limit, 0.75);
  EXPECT_FALSE(all[2].speed_up || all[2].distance_to_limit);
  EXPECT_EQ(all[3].distance_to_limit, 1);
  all.erase(all.begin());
  relate(all);
  EXPECT_FALSE(all[0].speed_up);
}

TEST(BestOfTest, IsTheFirstAtTheTargetElseTheMostAccurateElseTheLowest) {
  EXPECT_EQ(
      best_of({run_of(9, 0.9, 0.1), run_of(8, 0.8, 0.2), run_of({}, 0.95, 0.3)}).learning_rate,
      0.2);
  EXPECT_EQ(
      best_of({run_of({}, 0.6, 0.1), run_of({}, 0.7, 0.2), run_of({}, {}, 0.3)}).learning_rate,
      0.2);
  EXPECT_EQ(best_of({run_of({}, {}, 0.3), run_of({}, {}, 0.1)}).learning_rate, 0.1);
}

}  // namespace
}  // namespace syncopate::cli
