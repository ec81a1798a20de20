// Goal:   a report has the same content in each format, and says how it treated each unusual run.
// Method: made-up runs, one of which has crashed.
#include "cli/report/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/report/report_files.hpp"
#include "cli/report/run_list.hpp"
#include "tests/unit/cli/report/made_runs.hpp"

namespace syncopate::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ReportTest : public testing::Test {
 protected:
  ReportTest() {
    const auto crashed = made_.add("crashed", {.scheme = "asgd"});
    std::filesystem::remove(crashed / "summary.json");
    settings_ = study_of(
        read_runs({made_.add("a"), made_.add("b", {.seed = 2, .accuracies = {0.3, 0.7, 0.9}}),
                   made_.add("c", {.scheme = "esync", .seconds = 0.5}), crashed}),
        {.target = 0.6});
    report_ = report_on(settings_, {}, "syncopate report runs/*");
  }

  MadeRuns made_;
  std::vector<Setting> settings_;
  Report report_;
};

TEST_F(ReportTest, HasATableForATerminal) {
  EXPECT_THAT(text_of(report_),
              AllOf(HasSubstr("mlp on synthetic, cluster mixed"), HasSubstr("time to 0.6"),
                    HasSubstr("0.8500 ± 0.0707"), HasSubstr("\nnote: "),
                    HasSubstr("crashed: no summary.json")));
}

TEST_F(ReportTest, IsMarkdownWithTheRuns) {
  EXPECT_THAT(markdown_of(report_), AllOf(HasSubstr("# Report\n\n    syncopate report runs/*\n"),
                                          HasSubstr("\nSeeds 1, 2."),
                                          HasSubstr("| crashed | asgd | 1 | ended by an error | 3 "
                                                    "| 0.8000 | 3 s |")));
}

TEST_F(ReportTest, IsLatexWithAnEscapedPlusMinus) {
  EXPECT_THAT(latex_of(report_),
              AllOf(HasSubstr("\\usepackage{booktabs,graphicx}"),
                    HasSubstr("\\includegraphics[width=\\linewidth]{figures/accuracy-time.pdf}"),
                    HasSubstr("% syncopate report runs/*\n"), HasSubstr("0.8500 $\\pm$ 0.0707"),
                    HasSubstr("\\bottomrule"), HasSubstr("50.0 \\%")));
}

TEST_F(ReportTest, IsJsonWithEveryRun) {
  const auto json = json_of(settings_);
  const auto& setting = json.at("settings").at(0);
  EXPECT_EQ(setting.at("target_accuracy"), 0.6);
  EXPECT_EQ(setting.at("schemes").size(), 3U);
  EXPECT_EQ(setting.at("schemes").at(1).at("speed_up"), 2);
  EXPECT_EQ(setting.at("schemes").at(0).at("runs_read").size(), 2U);
  EXPECT_EQ(setting.at("schemes").at(2).at("runs_read").at(0).at("state"), "ended by an error");
}

TEST(MethodTest, NamesTheSchemesWhereOptionsDiffer) {
  MadeRuns made;
  const auto settings =
      study_of(read_runs({made.add("a", {.more = "batch_size = 16\noptimizer = 'adam'\n"}),
                          made.add("b", {.scheme = "esync",
                                         .seed = 3,
                                         .more = "batch_size = 64\noptimizer = 'adam'\n"}),
                          made.add("c", {.scheme = "asgd", .more = "batch_size = 16\n"})}),
               {});
  const auto report = report_on(settings, {});
  EXPECT_THAT(report.sections.at(0).method,
              testing::ElementsAre("Seeds 1, 3; mini-batch 16 (ssgd, asgd), 64 (esync); optimizer "
                                   "adam (ssgd, esync).",
                                   "Runs of syncopate 0.1.0 on some CPU, 2 cores."));
}

TEST_F(ReportTest, IsAPageAlsoWithoutFigures) {
  const std::string page = html_page(report_, made_.root() / "nowhere");
  EXPECT_THAT(page,
              AllOf(HasSubstr("<code>syncopate report runs/*</code>"), HasSubstr("<p>Seeds 1, 2."),
                    HasSubstr("<h2>mlp on synthetic"), HasSubstr("no summary.json"),
                    Not(HasSubstr("<figure>")), HasSubstr("</html>")));
}

}  // namespace
}  // namespace syncopate::cli
