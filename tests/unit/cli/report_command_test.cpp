// Goal:   a comparison adds its baselines, and `report` reads run folders and refuses other paths.
// Method: whole command lines through `run_cli`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "cli/compare/comparison.hpp"
#include "cli/handlers.hpp"
#include "tests/unit/cli/ran_command.hpp"

namespace syncopate::cli {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class ReportCommandTest : public testing::Test {
 protected:
  ReportCommandTest() {
    std::string name = (fs::temp_directory_path() / "report_command_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~ReportCommandTest() override { fs::remove_all(folder_); }

  RanCommand run(const std::vector<std::string>& words) {
    Handlers handlers;
    handlers.compare = [this](const CompareCommand& command) {
      comparison_ = command;
      return 0;
    };
    return run_words(words, handlers);
  }

  /// Returns the single line with which a command line is refused.
  std::string refusal(const std::vector<std::string>& words) {
    const RanCommand ran = run(words);
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    return ran.err;
  }

  std::string file(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    write_file(folder_ / name, text);
    return (folder_ / name).string();
  }

  fs::path folder_;
  std::optional<CompareCommand> comparison_;
};

TEST_F(ReportCommandTest, ComparesWithTheBaselinesUnlessTheyAreDropped) {
  const std::string cluster = file("two.toml", "[[devices]]\ncount = 2\nseconds_per_batch = 0.1\n");
  run({"compare", "--schemes", "asgd,esync", "--cluster", cluster, "--repeats", "5"});
  ASSERT_TRUE(comparison_);
  ASSERT_EQ(comparison_->contestants.size(), 3U);
  EXPECT_EQ(comparison_->contestants[2].label, "ssgd");
  EXPECT_EQ(comparison_->seeds, 5U);
  run({"compare", "--schemes", "asgd", "--cluster", cluster, "--no-baselines"});
  EXPECT_EQ(comparison_->contestants.size(), 1U);
  EXPECT_FALSE(comparison_->with_fast);
  run({"compare", "--schemes", "asgd", "--workers", "2"});
  EXPECT_EQ(comparison_->contestants.size(), 2U);
  EXPECT_FALSE(comparison_->with_fast);
  comparison_.reset();
  EXPECT_THAT(refusal({"compare", "--schemes", "ssgd", "--seeds", "2", "--repeats", "3"}),
              HasSubstr("the same number"));
}

TEST_F(ReportCommandTest, AddsABaselineWithoutServersOfOtherSchemes) {
  const RanCommand ran =
      run({"compare", "--schemes", "asgd,dc-asgd", "--workers", "2", "--servers", "2"});
  ASSERT_TRUE(comparison_) << ran.err;
  ASSERT_EQ(comparison_->contestants.size(), 3U);
  EXPECT_EQ(comparison_->contestants[0].config.servers, 2U);
  EXPECT_EQ(comparison_->contestants[2].label, "ssgd");
  EXPECT_EQ(comparison_->contestants[2].config.servers, 0U);
}

TEST_F(ReportCommandTest, RefusesAnUpperBoundBeforeItWrites) {
  const std::string cluster = file("two.toml", "[[devices]]\ncount = 2\nseconds_per_batch = 0.1\n");
  run({"compare", "--schemes", "ssgd", "--cluster", cluster, "--data-dir",
       (folder_ / "no-data").string(), "--out", (folder_ / "out").string()});
  ASSERT_TRUE(comparison_);
  comparison_->common.config.warm_up = 1000;  // more than the job has epochs
  try {
    compare(*comparison_);
    FAIL() << "not refused";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("limit: a warm-up"), HasSubstr("--no-limit")));
  }
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(ReportCommandTest, SaysWhyTheSystemDoesNotFindWhatAUserNames) {
  fs::create_symlink("loop", folder_ / "loop");
  const std::string loop = (folder_ / "loop").string();
  const std::vector<std::vector<std::string>> commands{
      {"report", loop},
      {"trace", loop},
      {"export", "esync-logs", loop, "--out", "a"},
      {"train", "--resume", loop},
      {"train", "--cluster", loop},
      {"compare", "--schemes", "ssgd", "--cluster", loop}};
  for (const auto& words : commands) {
    EXPECT_THAT(refusal(words),
                AllOf(testing::StartsWith("syncopate: cannot look at " + loop),
                      HasSubstr(": Too many levels of symbolic links; name another path")))
        << words.front();
  }
}

TEST_F(ReportCommandTest, RefusesToWriteIntoAFolderWithoutAName) {
  const std::string folder = (folder_ / "run").string();
  file("run/config.toml", "scheme = 'ssgd'\nnetwork = 'mlp'\n");
  EXPECT_THAT(refusal({"report", folder, "--out", ""}), HasSubstr("--out: expected a folder"));
  EXPECT_THAT(refusal({"compare", "--schemes", "ssgd", "--out", ""}),
              HasSubstr("--out: expected a folder"));
  EXPECT_THAT(refusal({"export", "esync-logs", folder, "--out", ""}),
              HasSubstr("--out: expected a folder"));
}

TEST_F(ReportCommandTest, ReportsRunsAndRefusesOtherFolders) {
  const std::string folder = (folder_ / "run").string();
  file("run/config.toml", "scheme = 'ssgd'\nnetwork = 'mlp'\n");
  const RanCommand ran = run({"report", folder, "--format", "markdown", "--target", "0.5"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("| ssgd | 0 of 1 |"), HasSubstr("no evaluation")));
  file("other/config.toml", "scheme = 'asgd'\nnetwork = 'mlp'\n");
  const RanCommand two = run({"report", folder, (folder_ / "other").string(), "--format", "json"});
  EXPECT_EQ(two.status, 0) << two.err;
  EXPECT_THAT(two.out, AllOf(HasSubstr("\"label\":\"ssgd\""), HasSubstr("\"label\":\"asgd\"")));
  EXPECT_THAT(refusal({"report", folder_.string()}), HasSubstr("expected the folder of a run"));
  EXPECT_THAT(refusal({"report"}), HasSubstr("needs the folders"));
  EXPECT_THAT(refusal({"report", folder, "--format", "pdf"}), HasSubstr("found 'pdf'"));
  EXPECT_THAT(refusal({"report", folder, "--target", "80"}), HasSubstr("--target"));
  EXPECT_THAT(refusal({"report", folder, "--labels", "a,b"}), HasSubstr("--labels"));
  EXPECT_THAT(run({"completion", "bash"}).out, HasSubstr("report:*) how=(-d -W ' --help"));
}

}  // namespace
}  // namespace syncopate::cli
