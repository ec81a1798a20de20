// Goal:   a run folder can be read in every state: ended, running, crashed, damaged, or written by
//         another version; a folder that is not a run folder is refused in one line.
// Method: folders of known content, from which the test removes parts.
#include "cli/report/run_record.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include "base/errors.hpp"
#include "cli/report/log_lines.hpp"
#include "cli/report/report.hpp"
#include "cli/report/run_list.hpp"
#include "cli/report/study.hpp"
#include "job/launch/descriptor.hpp"
#include "tests/unit/cli/report/made_runs.hpp"

namespace syncopate::cli {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(RunRecordTest, HoldsWhatTheFolderSays) {
  MadeRuns made;
  const RunRecord run = read_run(made.add("one", {.seed = 7}));
  EXPECT_EQ(run.seed, 7U);
  EXPECT_EQ(run.cluster, "mixed");
  EXPECT_EQ(run.state, "every epoch is done");
  ASSERT_EQ(run.evaluations.size(), 3U);
  EXPECT_EQ(run.evaluations[1].accuracy, 0.6);
  ASSERT_EQ(run.workers.size(), 2U);
  EXPECT_EQ(run.workers[0].back().wait, 3.5);
  EXPECT_THAT(run.notes, IsEmpty());
}

TEST(RunRecordTest, OfACrashedJobHasItsCurvesAndANote) {
  MadeRuns made;
  const fs::path folder = made.add("one");
  fs::remove(folder / "summary.json");
  const RunRecord run = read_run(folder);
  EXPECT_EQ(run.state, "ended by an error");
  EXPECT_TRUE(run.summary.is_null());
  EXPECT_EQ(run.evaluations.size(), 3U);
  EXPECT_THAT(run.notes, ElementsAre(HasSubstr("no summary.json")));
}

TEST(RunRecordTest, OfARunningJobIgnoresTheHalfLine) {
  MadeRuns made;
  const fs::path folder = made.add("one");
  fs::remove(folder / "summary.json");
  write_file(folder / "evaluations.jsonl",
             read_file(folder / "evaluations.jsonl") + "{\"round\": 4, \"samp");
  write_file(folder / "run.lock", "1 here\n");
  const Descriptor lock(::open((folder / "run.lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  const RunRecord run = read_run(folder);
  EXPECT_EQ(run.state, "running");
  EXPECT_EQ(run.evaluations.size(), 3U);
  EXPECT_THAT(run.notes,
              ElementsAre(HasSubstr("last line is not complete"), HasSubstr("still running")));
}

TEST(RunRecordTest, OfAResumedJobThatRunsIsNotThatOfItsEarlierSession) {
  MadeRuns made;
  const fs::path folder = made.add("one");
  write_file(folder / "run.lock", "1 here\n");
  const Descriptor lock(::open((folder / "run.lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  const RunRecord run = read_run(folder);
  EXPECT_EQ(run.state, "running");
  EXPECT_TRUE(run.summary.is_null());
  EXPECT_THAT(run.notes, ElementsAre(HasSubstr("still running")));
}

TEST(RunRecordTest, WithoutEvaluationsSaysSo) {
  MadeRuns made;
  const RunRecord run = read_run(made.add("one", {.accuracies = {}}));
  EXPECT_THAT(run.notes, ElementsAre(HasSubstr("no evaluation")));
}

TEST(RunRecordTest, OfAnotherVersionNamesWhatItLacks) {
  MadeRuns made;
  const fs::path folder = made.add("one");
  auto summary = nlohmann::ordered_json::parse(read_file(folder / "summary.json"));
  summary.erase("cluster_efficiency");
  summary.erase("staleness");
  summary["workers"][0].erase("wait_ratio");
  write_file(folder / "summary.json", summary.dump());
  const RunRecord run = read_run(folder);
  EXPECT_THAT(run.notes,
              ElementsAre("summary.json of another version lacks staleness, staleness.median, "
                          "staleness.p99, staleness.max, cluster_efficiency, workers.wait_ratio"));
}

TEST(RunRecordTest, SurvivesDamage) {
  MadeRuns made;
  const fs::path folder = made.add("one");
  write_file(folder / "summary.json", "{\"scheme\":");
  write_file(folder / "config.toml", "scheme = = 3\n");
  write_file(folder / "evaluations.jsonl", "no JSON\n{\"accuracy\": \"high\"}\n");
  const RunRecord run = read_run(folder);
  EXPECT_EQ(run.state, "damaged");
  EXPECT_THAT(run.evaluations, IsEmpty());
  EXPECT_THAT(run.notes,
              ElementsAre(HasSubstr("config.toml cannot be read"),
                          "evaluations.jsonl: 2 damaged lines passed over",
                          HasSubstr("summary.json is damaged"), HasSubstr("no evaluation")));
}

TEST(RunListTest, RefusesAFolderThatIsNoRun) {
  MadeRuns made;
  try {
    read_runs({made.root()});
    FAIL() << "not refused";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("expected the folder of a run or of a comparison"));
  }
  EXPECT_THROW(read_runs({made.root() / "nothing"}), ConfigError);
}

TEST(RunListTest, AFolderHasItsNameHoweverItIsSpelt) {
  MadeRuns made;
  const fs::path folder = made.add("one");
  fs::remove(folder / "summary.json");
  write_file(folder.string() + ".diverged.json", "{}");
  for (const char* end : {"/", "//", "/.", "/workers/.."}) {
    const auto runs = read_runs({folder.string() + end});
    EXPECT_EQ(runs.at(0).folder.filename(), "one") << end;
    EXPECT_EQ(runs.at(0).state, "diverged") << end;
  }
}

TEST(RunListTest, AComparisonStandsForItsCountedRuns) {
  MadeRuns made;
  made.add("runs/ssgd-seed1");
  made.add("runs/ssgd-lr0.1-seed0");  // a run that only tried a learning rate
  made.add("runs/ssgd-fast-seed1", {.cluster = "/elsewhere/fast.toml"});
  write_file(made.root() / "comparison.json",
             R"({"agreement": {"cluster": "clusters/mixed.toml"}, "target_accuracy": 0.7,
                 "runs": [{"label": "ssgd", "name": "ssgd-seed1", "seed": 1},
                          {"label": "ssgd-fast", "name": "ssgd-fast-seed1", "seed": 1}]})");
  const auto runs = read_runs({made.root(), made.root()});
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[1].label, "ssgd-fast");
  EXPECT_EQ(runs[1].cluster, "mixed");
  EXPECT_EQ(runs[1].target, 0.7);
}

TEST(RunListTest, ADivergedRunOfAComparisonHasNoFolder) {
  MadeRuns made;
  made.add("runs/ssgd-seed1");
  write_file(made.root() / "runs" / "ssgd-seed2.diverged.json", "{}");
  write_file(made.root() / "comparison.json",
             R"({"agreement": {"cluster": "mixed.toml", "network": "mlp", "data": "synthetic",
                               "split": "iid"},
                 "virtual_time": false,
                 "runs": [{"label": "ssgd", "name": "ssgd-seed1", "seed": 1},
                          {"label": "ssgd", "name": "ssgd-seed2", "seed": 2}]})");
  const auto runs = read_runs({made.root()});
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[1].state, "diverged");
  EXPECT_EQ(runs[1].seed, 2U);
  const auto settings = study_of(runs, {});
  ASSERT_EQ(settings.size(), 1U);  // all have the clock of the comparison
  EXPECT_FALSE(settings[0].virtual_time);
  ASSERT_EQ(settings[0].groups.size(), 1U);
  EXPECT_EQ(settings[0].groups[0].figures.runs, 2U);
  EXPECT_EQ(settings[0].groups[0].figures.accuracy->mean, 0.8);
}

TEST(RunListTest, AComparisonWithoutItsRunsHasTheirFigures) {
  MadeRuns made;
  const auto run = [](int seed, double seconds, double accuracy) {
    return fmt::format(
        R"({{"label": "esync", "name": "esync-seed{}", "seed": {}, "learning_rate": 0.05,
             "time_to_target_seconds": {}, "accuracy": {}, "training_seconds": 9,
             "samples": 4000, "throughput": 1000, "cluster_efficiency": 0.5,
             "devices": [{{"device": "gpu", "throughput": 500, "computing_time_ratio": 0.75,
                           "communication_ratio": 0.05, "wait_ratio": 0.2}}],
             "traffic_bytes": 8000000, "local_bytes": 0}})",
        seed, seed, seconds, accuracy);
  };
  write_file(made.root() / "comparison.json",
             fmt::format(R"({{"agreement": {{"cluster": "mixed.toml", "network": "mlp"}},
                              "target_accuracy": 0.7, "virtual_time": true, "runs": [{}, {}]}})",
                         run(1, 3, 0.8), run(2, 5, 0.9)));
  const auto settings = study_of(read_runs({made.root()}), {});
  ASSERT_EQ(settings.size(), 1U);
  const ContestantFigures& figures = settings[0].groups.at(0).figures;
  EXPECT_EQ(figures.reached, 2U);
  EXPECT_EQ(figures.time_to_target->median, 4);
  EXPECT_NEAR(figures.accuracy->mean, 0.85, 1e-12);
  EXPECT_EQ(figures.throughput, 1000);
  EXPECT_EQ(figures.totals_per_sample.at("exchanged_bytes"), 2000);
  EXPECT_EQ(figures.devices.at(0).computing, 0.75);
  EXPECT_FALSE(figures.median_staleness) << "not in the file";
  const Report report = report_on(settings, {});
  EXPECT_THAT(report.notes, ElementsAre(made.root().string() +
                                        ": 2 of 2 runs have no folder: their figures are those in "
                                        "comparison.json; curves and time lines need the runs"));
  EXPECT_THAT(markdown_of(report), HasSubstr("| esync-seed2 | esync | 2 | figures of "
                                             "comparison.json | 0 | 0.9000 | 9 s |"));
  const auto other = study_of(read_runs({made.root()}), {.target = 0.75});
  EXPECT_FALSE(other[0].groups.at(0).figures.time_to_target);
  EXPECT_THAT(other[0].groups.at(0).runs.at(0).notes,
              testing::Contains(HasSubstr("only times to accuracy 0.7; times to 0.75 need")));
}

TEST(RunListTest, AComparisonThatHasNotEndedHasAllItsRuns) {
  MadeRuns made;
  made.add("runs/ssgd-seed1");
  write_file(made.root() / "comparison.json", R"({"agreement": {}})");
  const auto runs = read_runs({made.root()});
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_THAT(runs[0].notes, ElementsAre(HasSubstr("has not ended")));
}

TEST(JsonLinesTest, CountDamageAndAHalfLine) {
  const JsonLines lines = json_lines_in("{\"a\": 1}\nx\n[1]\n\n{\"a\": 2}\n{\"a\":");
  EXPECT_EQ(lines.objects.size(), 2U);
  EXPECT_EQ(lines.damaged, 2U);
  EXPECT_TRUE(lines.half_line);
  EXPECT_FALSE(json_lines_in("{\"a\": 1}").half_line);
}

}  // namespace
}  // namespace syncopate::cli
