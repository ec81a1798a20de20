// Goal:   a paper's figures stand beside ours on its cluster, and on no other.
// Method: made runs on a cluster of that name; a reference of two figures.
#include "cli/report/published.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.hpp"
#include "cli/report/run_list.hpp"
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
  // 8 MB over 4,000 samples, 1,000 samples a second.
  EXPECT_THAT(rows, Contains(ElementsAre("esync", "traffic", "21 MB/s", "2 MB/s")));
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
       {"", "[]", "{\"source\": \"x\", \"figures\": [{\"figure\": \"beauty\", \"scheme\": \"s\"}]}",
        "{\"source\": \"x\", \"figures\": [{\"figure\": \"accuracy\", \"scheme\": \"s\"}]}",
        "{\"source\": \"x\", \"figures\": [{\"figure\": \"accuracy\", \"scheme\": \"s\", "
        "\"values\": "
        "[]}]}"}) {
    try {
      published_in(text, "mine.json");
      FAIL() << text;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), testing::StartsWith("mine.json: expected "));
    }
  }
}

}  // namespace
}  // namespace syncopate::cli
