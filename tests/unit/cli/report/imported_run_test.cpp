// Goal:   a run that was exported to the logs of ESync's tools and imported again is reported with
//         its values, except those that such logs do not have.
// Method: a made-up run is exported, imported and reported; logs as ESync itself writes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/report/report.hpp"
#include "cli/report/run_list.hpp"
#include "report/esync_logs.hpp"
#include "tests/unit/cli/report/made_runs.hpp"

namespace syncopate::cli {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;

TEST(ImportedRunTest, IsReportedWithItsValues) {
  MadeRuns made;
  const fs::path run = made.add("asgd", {.scheme = "asgd", .seed = 7});
  export_esync_logs(RunFolder(run), made.root() / "logs");
  const fs::path again = made.root() / "again";
  import_esync_logs(made.root() / "logs", RunFolder(again));
  const auto settings = study_of(read_runs({again}), {.target = 0.6});
  ASSERT_EQ(settings.size(), 1U);
  EXPECT_EQ(settings[0].title(), "mlp on synthetic, cluster mixed, i.i.d., virtual time");
  const RunGroup& group = settings[0].groups.at(0);
  EXPECT_EQ(group.label, "asgd");
  EXPECT_EQ(group.runs.at(0).seed, 7U);
  EXPECT_EQ(group.figures.time_to_target->median, 2);
  EXPECT_EQ(group.figures.accuracy->mean, 0.8);
  EXPECT_EQ(group.figures.throughput, 1000);
  EXPECT_NEAR(group.figures.devices.at(0).computing, 0.25, 1e-3);
  EXPECT_NEAR(group.figures.devices.at(1).computing, 0.95, 1e-3);
  EXPECT_EQ(group.runs.at(0).evaluations.at(1).epoch, 0.1);
  EXPECT_THAT(group.runs.at(0).notes,
              ElementsAre("esync-logs do not have staleness, staleness.median, staleness.p99, "
                          "staleness.max, cluster_efficiency"));
  const std::string text = text_of(report_on(settings, {}));
  EXPECT_THAT(text, ContainsRegex("\nasgd +1,000 +25.0 to 95.0 %"));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("0 B")), Not(HasSubstr("damaged"))));
}

TEST(ImportedRunTest, OfForeignLogsHasWhatTheUserSays) {
  MadeRuns made;
  const fs::path logs = made.root() / "logs" / "cloud" / "gpu0";
  fs::create_directories(logs);
  for (int round = 1; round <= 3; ++round) {
    write_file(logs / fmt::format("iter-{}.txt", round),
               fmt::format(R"({{"num_iters": {0}, "time": {{"0": {{"forward and backward": 1.0}}, )"
                           R"("1": {{"global update": 0.5, "evaluation": 0.25}}}}, )"
                           R"("num_samples": 64, "total_time": {1}, "accuracy": 0.{2}}})",
                           round, 2 * round, 3 + 2 * round));
  }
  const fs::path run = made.root() / "run";
  import_esync_logs(made.root() / "logs", RunFolder(run), {.network = "vgg", .cluster = "cloud"});
  const auto settings = study_of(read_runs({run}), {.target = 0.6});
  EXPECT_EQ(settings[0].title(), "vgg on unknown data, cluster cloud, i.i.d., real time");
  EXPECT_EQ(settings[0].groups.at(0).label, "esync");
  EXPECT_EQ(settings[0].groups.at(0).figures.time_to_target->median, 4);
  EXPECT_EQ(settings[0].groups.at(0).figures.accuracy->mean, 0.9);
}

}  // namespace
}  // namespace syncopate::cli
