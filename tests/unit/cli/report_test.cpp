// Goal:   tables show the figures, and "-" for an unknown one.
// Method: a contestant with every figure, and one whose runs all diverged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/compare/comparison_report.hpp"

namespace syncopate::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ContestantFigures complete() {
  return {.label = "esync",
          .learning_rate = 0.02,
          .runs = 3,
          .reached = 2,
          .tested = 2,
          .time_to_target = Spread{.median = 5.25, .least = 5, .most = 6},
          .speed_up = 90.123,
          .distance_to_limit = 0.5,
          .accuracy = MeanAndDeviation{.mean = 0.86125, .deviation = 0.002},
          .throughput = 8364.7,
          .cluster_efficiency = 0.976,
          .totals = {{"exchanged_bytes", 2541.1e6}, {"local_bytes", 2.5e9}},
          .totals_per_sample = {{"exchanged_bytes", 153}},
          .median_staleness = 0,
          .p99_staleness = 1,
          .most_staleness = 2,
          .devices = {{.name = "gpu", .computing = 0.951, .wait = 0.02, .throughput = 2000},
                      {.name = "cpu", .computing = 0.999, .wait = 0.001, .throughput = 20}}};
}

TEST(TablesTest, ShowEveryFigureOnce) {
  const auto tables =
      tables_of({complete(), {.label = "ssgd", .learning_rate = 0.1, .runs = 3}}, 0.8);
  ASSERT_EQ(tables.size(), 3U);
  EXPECT_THAT(
      tables[0].table.lines(),
      ElementsAre(
          "scheme  rate      time to 0.8  reached  speed-up  of upper bound         accuracy",
          "esync   0.02  5.25 s (5 to 6)   2 of 3      90.1             0.5  0.8612 ± 0.0020",
          "ssgd     0.1                -   0 of 3         -               -                -"));
  EXPECT_THAT(
      tables[1].table.lines()[1],
      HasSubstr("8,365      97.6 %  95.1 to 99.9 %          0.0 %  0.1 to 2.0 %    2.54 GB  "
                "   153 B            2.5 GB  0 / 1 / 2"));
  EXPECT_THAT(tables[2].table.lines(),
              ElementsAre("device   esync", "0 gpu   95.1 %", "1 cpu   99.9 %"));
}

TEST(TablesTest, ShowBatchSizesWhereSeveralWereTried) {
  ContestantFigures one = complete();
  one.batch_size = 16;
  const auto lines = tables_of({one, {.label = "ssgd", .runs = 3}}, 0.8)[0].table.lines();
  EXPECT_THAT(lines[0], testing::StartsWith("scheme  batch  rate"));
  EXPECT_THAT(lines[1], testing::StartsWith("esync      16  0.02"));
  EXPECT_THAT(lines[2], testing::StartsWith("ssgd        -     -"));
  EXPECT_EQ(to_json(one).at("batch_size"), 16);
}

TEST(TablesTest, HaveNoColumnOfWhatNobodyHas) {
  EXPECT_THAT(tables_of({{.label = "ssgd", .runs = 3}}, {})[0].table.lines(),
              ElementsAre("scheme", "ssgd"));
}

TEST(TablesTest, RoundSamplesPerSecondAndKeepSmallOnes) {
  EXPECT_EQ(number_text(0.95), "0.95");
  EXPECT_EQ(number_text(999.4), "999");
  EXPECT_EQ(number_text(999.6), "1,000");
  EXPECT_EQ(number_text(8364.7), "8,365");
  ContestantFigures slow = complete();
  slow.throughput = 0.95;
  EXPECT_THAT(tables_of({slow}, 0.8)[1].table.lines()[1], testing::StartsWith("esync        0.95"));
}

TEST(TablesTest, ShowLongTimesInWholeSeconds) {
  ContestantFigures slow = complete();
  slow.time_to_target = Spread{.median = 18523.4, .least = 12345.2, .most = 24690.5};
  EXPECT_THAT(tables_of({slow}, 0.8)[0].table.lines()[1], HasSubstr("18,523 s (12,345 to 24,691)"));
  EXPECT_EQ(seconds_figure(999.94), "999.9");
  EXPECT_EQ(seconds_figure(999.96), "1,000");
}

TEST(TablesTest, ShowADeviationOfSeveralAccuraciesAlone) {
  ContestantFigures one = complete();
  one.tested = 1;  // two of its three runs diverged
  EXPECT_EQ(accuracy_text(one), "0.8612");
}

TEST(MarkdownTest, SaysHowItWasMade) {
  const std::string text =
      markdown_of(tables_of({complete()}, 0.8), {.command = "syncopate compare --schemes esync",
                                                 .machine = "some CPU, 2 cores",
                                                 .date = "2026-01-31",
                                                 .version = "syncopate 0.1.0",
                                                 .worlds = "Run in real time, 3 seeds"});
  EXPECT_THAT(text, HasSubstr("    syncopate compare --schemes esync\n"));
  EXPECT_THAT(
      text,
      HasSubstr("syncopate 0.1.0; some CPU, 2 cores; 2026-01-31. Run in real time, 3 seeds."));
  EXPECT_THAT(text, HasSubstr("| scheme | rate | time to 0.8 |"));
  EXPECT_THAT(text, HasSubstr("| --- | ---: | ---: |"));
  EXPECT_THAT(text, HasSubstr("| esync | 0.02 | 5.25 s (5 to 6) | 2 of 3 |"));
}

TEST(ContestantJsonTest, HasNullForWhatIsNotKnown) {
  const auto known = to_json(complete());
  EXPECT_EQ(known.at("time_to_target_seconds").at("median"), 5.25);
  EXPECT_EQ(known.at("devices").at(1).at("computing_time_ratio"), 0.999);
  const auto unknown = to_json(ContestantFigures{.label = "ssgd"});
  EXPECT_TRUE(unknown.at("accuracy").is_null());
  EXPECT_TRUE(unknown.at("speed_up").is_null());
}

}  // namespace
}  // namespace syncopate::cli
