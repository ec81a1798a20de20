// Goal:   runs that differ only in their seeds form one group, labels name the differences of
//         groups, and a target accuracy is chosen if none is given.
// Method: made-up run folders.
#include "cli/report/study.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.hpp"
#include "cli/report/report.hpp"
#include "cli/report/run_list.hpp"
#include "tests/unit/cli/report/made_runs.hpp"

namespace syncopate::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> labels_in(const Setting& setting) {
  std::vector<std::string> labels;
  for (const RunGroup& group : setting.groups) {
    labels.push_back(group.label);
  }
  return labels;
}

TEST(StudyTest, GroupsSeedsAndSeparatesSettings) {
  MadeRuns made;
  const auto settings =
      study_of(read_runs({made.add("a", {.seed = 1}), made.add("b", {.seed = 2}),
                          made.add("c", {.scheme = "esync", .seconds = 0.5, .throughput = 3000}),
                          made.add("d", {.split = "dirichlet:0.5"})}),
               {.target = 0.6});
  ASSERT_EQ(settings.size(), 2U);
  EXPECT_THAT(labels_in(settings[0]), ElementsAre("ssgd", "esync"));
  EXPECT_EQ(settings[0].groups[0].runs.size(), 2U);
  EXPECT_EQ(settings[0].title(), "mlp on synthetic, cluster mixed, i.i.d., virtual time");
  EXPECT_THAT(settings[1].title(), HasSubstr("split dirichlet:0.5"));
  // The second of three evaluations reaches 0.6, and the third confirms it.
  EXPECT_EQ(settings[0].groups[0].figures.time_to_target->median, 2);
  EXPECT_EQ(settings[0].groups[1].figures.speed_up, 2);
  EXPECT_EQ(settings[0].groups[1].figures.throughput, 3000);
  EXPECT_EQ(settings[0].groups[1].look.colour, "#0072B2");
  EXPECT_EQ(settings[1].groups[0].look.colour, settings[0].groups[0].look.colour);
}

TEST(StudyTest, NamesANetworkOfAFileWithoutItsFolderAndKeepsFilesApart) {
  MadeRuns made;
  const auto settings = study_of(read_runs({made.add("a", {.network = "/mine/model.pt"}),
                                            made.add("b", {.network = "/mine/model.pt"}),
                                            made.add("c", {.network = "/yours/model.pt"})}),
                                 {});
  ASSERT_EQ(settings.size(), 2U);
  EXPECT_EQ(settings[0].groups.at(0).runs.size(), 2U);
  EXPECT_EQ(settings[0].title(), "model.pt on synthetic, cluster mixed, i.i.d., virtual time");
  EXPECT_EQ(json_of(settings)["settings"][0]["network"], "model.pt");
}

TEST(StudyTest, NamesTheOptionsInWhichGroupsOfOneSchemeDiffer) {
  MadeRuns made;
  const auto settings = study_of(
      read_runs({made.add("a", {.scheme = "esync", .more = "pacing = 'paper'\nbalance = false\n"}),
                 made.add("b", {.scheme = "esync", .more = "pacing = 'timed'\nbalance = false\n"}),
                 made.add("c", {.scheme = "esync", .more = "balance = false\n"}),
                 made.add("d", {.scheme = "asgd"})}),
      {});
  ASSERT_EQ(settings.size(), 1U);
  EXPECT_THAT(labels_in(settings[0]), ElementsAre("esync:pacing=paper", "esync:pacing=timed",
                                                  "esync:pacing=default", "asgd"));
}

TEST(StudyTest, TakesTheHighestTargetThatAllReach) {
  MadeRuns made;
  const auto target = [&](const std::vector<double>& accuracies) {
    const auto settings = study_of(
        read_runs({made.add("a"), made.add("b", {.scheme = "asgd", .accuracies = accuracies})}),
        {});
    return settings[0].target;
  };
  EXPECT_EQ(target({0.9, 0.9}), 0.6);  // the other group confirms only 0.6
  EXPECT_EQ(target({0.3, 0.32, 0.31}), 0.3);
  EXPECT_EQ(target({}), 0.6);  // the other group was never tested
}

TEST(StudyTest, TakesATargetThatHasAMedianTime) {
  MadeRuns made;
  const std::vector<std::filesystem::path> two{
      made.add("a", {.seed = 1, .accuracies = {0.3, 0.9, 0.9}}),
      made.add("b", {.seed = 2, .accuracies = {0.3, 0.4, 0.4}})};
  const Setting of_two = study_of(read_runs(two), {})[0];
  EXPECT_EQ(of_two.target, 0.4) << "one of two runs reached 0.9, which is no median";
  EXPECT_EQ(of_two.groups.at(0).figures.time_to_target->median, 2);
  std::vector<std::filesystem::path> three = two;
  three.push_back(made.add("c", {.seed = 3, .accuracies = {0.8, 0.9, 0.9}}));
  EXPECT_EQ(study_of(read_runs(three), {})[0].target, 0.9);
}

/// Makes a run folder as `syncopate import` writes it.
std::filesystem::path imported(MadeRuns& made, const std::string& name, const std::string& more) {
  const auto folder = made.add(name, {.scheme = "esync", .more = more});
  auto summary = nlohmann::ordered_json::parse(read_file(folder / "summary.json"));
  summary["imported_from"] = "esync-logs";
  write_file(folder / "summary.json", summary.dump());
  return folder;
}

TEST(StudyTest, AnOptionThatAnImportedRunLacksIsNoDifference) {
  MadeRuns made;
  const std::string own = "batch_size = 64\nalpha = 0.99\nmomentum = 0.9\npacing = 'timed'\n";
  const auto labels = [&](const std::vector<std::filesystem::path>& folders) {
    return labels_in(study_of(read_runs(folders), {})[0]);
  };
  const auto native = made.add("a", {.scheme = "esync", .more = own});
  EXPECT_THAT(labels({native, imported(made, "b", "batch_size = 64\n")}),
              ElementsAre("esync", "esync:imported"));
  EXPECT_THAT(labels({native, imported(made, "c", "batch_size = 32\n")}),
              ElementsAre("esync:batch-size=64", "esync:batch-size=32"));
  EXPECT_THAT(labels({native, made.root() / "b", imported(made, "d", "")}),
              ElementsAre("esync", "esync:imported", "esync:imported:2"));
}

TEST(StudyTest, RenamesInOrderAndRefusesAnotherNumber) {
  MadeRuns made;
  const std::vector<std::filesystem::path> folders{
      made.add("a"), made.add("b", {.scheme = "esync", .seconds = 0.5})};
  const auto settings = study_of(read_runs(folders), {.target = 0.6, .labels = {"SSGD", "ESync"}});
  EXPECT_EQ(settings[0].groups[1].figures.label, "ESync");
  EXPECT_EQ(settings[0].groups[1].figures.speed_up, 2);
  EXPECT_THROW(study_of(read_runs(folders), {.target = {}, .labels = {"SSGD"}}), ConfigError);
}

TEST(StudyTest, ARunWithoutFiguresHasNoMedians) {
  MadeRuns made;
  const auto crashed = made.add("a");
  std::filesystem::remove(crashed / "summary.json");
  const auto settings = study_of(read_runs({crashed, made.add("b", {.seed = 2})}), {});
  ASSERT_EQ(settings[0].groups.size(), 1U);
  const ContestantFigures& figures = settings[0].groups[0].figures;
  EXPECT_EQ(figures.runs, 1U) << "of those that have ended";
  EXPECT_EQ(figures.throughput, 1000);
  EXPECT_EQ(figures.devices.size(), 2U);
  EXPECT_EQ(figures.accuracy->mean, 0.8);
}

TEST(StudyTest, ARunThatCrashedChangesNoFigure) {
  MadeRuns made;
  const auto crashed = made.add("a3", {.seed = 3, .accuracies = {0.1}});
  std::filesystem::remove(crashed / "summary.json");
  const auto settings = study_of(
      read_runs({made.add("a1"), made.add("b1", {.scheme = "esync", .seconds = 0.5}), crashed}),
      {});
  EXPECT_EQ(settings[0].target, 0.6);
  const ContestantFigures& figures = settings[0].groups.at(0).figures;
  EXPECT_EQ(settings[0].groups[0].runs.size(), 2U);
  EXPECT_EQ(figures.time_to_target->median, 2);
  EXPECT_EQ(figures.learning_rate, 0.1);
  EXPECT_EQ(figures.tested, 1U);
  EXPECT_EQ(settings[0].groups.at(1).figures.speed_up, 2);
}

TEST(StudyTest, ARunThatDivergedReachedNoTarget) {
  MadeRuns made;
  const auto diverged = made.add("a2", {.seed = 2, .accuracies = {0.1}});
  std::filesystem::remove(diverged / "summary.json");
  write_file(diverged.string() + ".diverged.json", "{}");
  const auto settings = study_of(read_runs({made.add("a1"), diverged}), {.target = 0.6});
  const ContestantFigures& figures = settings[0].groups.at(0).figures;
  EXPECT_EQ(figures.runs, 2U);
  EXPECT_EQ(figures.reached, 1U);
  EXPECT_FALSE(figures.time_to_target);
}

TEST(StudyTest, AMissingFigureIsUnknownAndNotZero) {
  MadeRuns made;
  const auto folder = made.add("a");
  auto summary = nlohmann::ordered_json::parse(read_file(folder / "summary.json"));
  summary.erase("cluster_efficiency");
  write_file(folder / "summary.json", summary.dump());
  const auto settings = study_of(read_runs({folder}), {});
  EXPECT_FALSE(settings[0].groups[0].figures.cluster_efficiency);
  EXPECT_EQ(settings[0].groups[0].figures.throughput, 1000);
}

TEST(HeterogeneityTest, IsInTheNameOfTheCluster) {
  EXPECT_EQ(heterogeneity_of({.network = "", .data = "", .split = "", .cluster = "ratio-16"}), 16);
  EXPECT_FALSE(heterogeneity_of({.network = "", .data = "", .split = "", .cluster = "mixed"}));
}

}  // namespace
}  // namespace syncopate::cli
