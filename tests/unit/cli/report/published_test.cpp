// Goal:   a report shows a paper's figures beside ours for the paper's cluster, and for no other.
// Method: made-up runs on a cluster of that name; a reference with two figures.
#include "cli/report/published.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.hpp"
#include "cli/report/run_list.hpp"
#include "tests/support/refusal.hpp"
#include "tests/unit/cli/report/made_runs.hpp"

namespace syncopate::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(PublishedTest, StandsBesideTheSameSchemeOnTheSameCluster) {
  MadeRuns made;
  const auto settings = study_of(
      read_runs({made.add("a", {.cluster = "clusters/paper.toml"}),
                 made.add("b", {.scheme = "esync", .cluster = "paper.toml", .seconds = 0.5})}),
      {.target = 0.6});
  const auto table = beside_published(settings[0], esync_paper());
  ASSERT_TRUE(table);
  EXPECT_THAT(table->title, HasSubstr("ESync (2019)"));
  const auto& rows = table->table.rows();
  EXPECT_THAT(
      rows, Contains(ElementsAre("esync", "speed-up over ssgd", "2 to 27 (other networks)", "2")));
  EXPECT_THAT(rows, Contains(ElementsAre("ssgd", "throughput", "45 samples/s", "1000 samples/s")));
  // 8 MB over 4,000 samples, at 1,000 samples per second.
  EXPECT_THAT(rows, Contains(ElementsAre("esync", "traffic", "21 MB/s", "3 MB/s")));
  EXPECT_THAT(rows,
              Contains(ElementsAre("esync", "computing time ratio", "37 to 42 %", "25 to 90 %")));
  EXPECT_THAT(rows, Contains(ElementsAre("asgd", "throughput", "120 samples/s", "-")));
}

TEST(PublishedTest, OfAnotherClusterIsNotShown) {
  MadeRuns made;
  const auto settings = study_of(read_runs({made.add("a")}), {});
  EXPECT_FALSE(beside_published(settings[0], esync_paper()));
}

TEST(PublishedTest, TakesTheNetworkOfTheRuns) {
  MadeRuns made;
  const auto settings = study_of(read_runs({made.add("a"), made.add("b", {.seed = 2})}), {});
  const Published mine = published_in(
      R"({"source": "a page", "figures": [
          {"figure": "accuracy", "scheme": "ssgd", "network": "mlp", "value": 0.9,
           "deviation": 0.01},
          {"figure": "accuracy", "scheme": "ssgd", "network": "alexnet", "value": 0.5}]})",
      "mine.json");
  EXPECT_THAT(beside_published(settings[0], mine)->table.rows(),
              ElementsAre(ElementsAre("ssgd", "accuracy", "0.9 ± 0.01", "0.8 ± 0")));
}

TEST(PublishedTest, RefusesAnotherFormInOneLine) {
  for (const char* text :
       {"", "[]", R"({"source": "x", "figures": [{"figure": "beauty", "scheme": "s"}]})",
        R"({"source": "x", "figures": [{"figure": "accuracy", "scheme": "s"}]})",
        R"({"source": "x", "figures": [{"figure": "accuracy", "scheme": "s", "values": []}]})"}) {
    try {
      published_in(text, "mine.json");
      FAIL() << text;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), testing::StartsWith("mine.json: expected "));
    }
  }
}

std::string refusal_of(std::string_view text) {
  return refusal([&] { published_in(text, "mine.json"); });
}

TEST(PublishedTest, RefusalsNameTheLineOrTheFieldInOurWords) {
  EXPECT_EQ(refusal_of("[1"), "mine.json: expected JSON, found '[1' in line 1; correct it");
  EXPECT_EQ(refusal_of("{\"source\": 1,\n  figures}\n"),
            "mine.json: expected JSON, found '  figures}' in line 2; correct it");
  EXPECT_EQ(refusal_of("{\"source\":\n\n"),
            "mine.json: expected JSON, found '{\"source\":' in line 1; correct it");
  EXPECT_EQ(refusal_of("[1e999]"),
            "mine.json: expected numbers below 1.8e308, found a greater one; correct it");
  EXPECT_EQ(refusal_of("[1]"),
            "mine.json: expected an object with source and figures, found [1]; correct it");
  EXPECT_EQ(refusal_of(R"({"source": 1})"),
            "mine.json: expected a text in source, found 1; correct it");
  EXPECT_EQ(refusal_of(R"({"source": "x"})"),
            "mine.json: expected a list in figures, found no value; correct it");
}

TEST(PublishedTest, RefusalsNameTheFigure) {
  const auto refusal_of_second = [](const std::string& figure) {
    return refusal_of(R"({"source": "x", "figures": [
        {"figure": "accuracy", "scheme": "ssgd", "value": 1}, )" +
                      figure + "]}");
  };
  EXPECT_EQ(refusal_of_second("2"),
            "mine.json: expected an object in figures[1], found 2; correct it");
  EXPECT_EQ(refusal_of_second(R"({"figure": "beauty", "scheme": "ssgd", "value": 1})"),
            "mine.json: expected one of speed_up, throughput, traffic_mb_per_s, "
            "computing_time_ratio, accuracy in figures[1].figure, found \"beauty\"; correct it");
  EXPECT_EQ(refusal_of_second(R"({"figure": "accuracy", "value": 1})"),
            "mine.json: expected a text in figures[1].scheme, found no value; correct it");
  EXPECT_EQ(refusal_of_second(R"({"figure": "accuracy", "scheme": "ssgd", "values": [1, "2"]})"),
            "mine.json: expected a number in figures[1].values[1], found \"2\"; correct it");
}

}  // namespace
}  // namespace syncopate::cli
