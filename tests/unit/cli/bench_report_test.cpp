// Goal:   all three output formats show the same figures, exact for programs and with units for
//         people.
// Method: hand-made results with times of every magnitude, whose quantiles are known.
#include "cli/bench/bench_report.hpp"

#include <gtest/gtest.h>

namespace syncopate::cli {
namespace {

using Json = nlohmann::ordered_json;

Results two_results() {
  Json small{{"transport", "tcp"}, {"ranks", 2}, {"bytes", 1000}};
  add_times(small, {3e-6, 1e-6, 2e-6});
  small["bytes_per_second"] = 5e8;
  Json large{{"transport", "tcp"}, {"ranks", 2}, {"bytes", 44'700'000}};
  add_times(large, {0.0145});
  large["bytes_per_second"] = 3.0828e9;
  return {small, large};
}

TEST(AddTimesTest, TakesMedianLeastAndTheNinetiethOfAHundred) {
  std::vector<double> seconds;
  for (int i = 100; i > 0; --i) {
    seconds.push_back(i);
  }
  Json result;
  add_times(result, seconds);
  EXPECT_EQ(result["median_seconds"], 50.5);
  EXPECT_EQ(result["min_seconds"], 1);
  EXPECT_EQ(result["p90_seconds"], 90);
}

TEST(AddTimesTest, OfOneValueEverythingIsThatValue) {
  Json result;
  add_times(result, {0.25});
  EXPECT_EQ(result.dump(), R"({"median_seconds":0.25,"min_seconds":0.25,"p90_seconds":0.25})");
}

TEST(SecondsTextTest, HasThreeDigitsAndAUnit) {
  EXPECT_EQ(seconds_text(0), "0.00 ns");
  EXPECT_EQ(seconds_text(2.5e-8), "25.0 ns");
  EXPECT_EQ(seconds_text(1.234e-6), "1.23 µs");
  EXPECT_EQ(seconds_text(0.0145), "14.5 ms");
  EXPECT_EQ(seconds_text(0.9996), "1.00 s");
  EXPECT_EQ(seconds_text(0.999), "999 ms");
  EXPECT_EQ(seconds_text(123.4), "123 s");
}

TEST(ReportTest, IsATableForPeople) {
  EXPECT_EQ(report(two_results(), Form::text),
            "transport  ranks    bytes   median      min      p90  bandwidth\n"
            "tcp            2     1 kB  2.00 µs  1.00 µs  3.00 µs  0.50 GB/s\n"
            "tcp            2  44.7 MB  14.5 ms  14.5 ms  14.5 ms  3.08 GB/s");
}

TEST(ReportTest, IsMarkdownForPages) {
  EXPECT_EQ(report({two_results().back()}, Form::markdown),
            "| transport | ranks | bytes | median | min | p90 | bandwidth |\n"
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
            "| tcp | 2 | 44.7 MB | 14.5 ms | 14.5 ms | 14.5 ms | 3.08 GB/s |");
}

TEST(ReportTest, IsOneObjectForPrograms) {
  const Json json = Json::parse(report(two_results(), Form::json));
  EXPECT_EQ(json["results"].size(), 2U);
  EXPECT_EQ(json["results"][0].dump(),
            R"({"transport":"tcp","ranks":2,"bytes":1000,"median_seconds":2e-06,)"
            R"("min_seconds":1e-06,"p90_seconds":3e-06,"bytes_per_second":500000000.0})");
}

}  // namespace
}  // namespace syncopate::cli
