// Goal:   `syncopate run` takes the options of a job and a program with its arguments, and refuses
//         in one line what it cannot start.
// Method: the test compares the request that results from each command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "cli/handlers.hpp"

namespace syncopate::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RunCommandTest : public testing::Test {
 protected:
  /// Runs a command line; returns its exit status and stores its standard error in `errors_`.
  int run(std::vector<std::string> words) {
    words.insert(words.begin(), {"syncopate", "run"});
    std::vector<char*> argv;
    for (std::string& word : words) {
      argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    Handlers handlers;
    handlers.run = [this](const RunCommand& command) {
      request_ = command.request;
      return 0;
    };
    testing::internal::CaptureStderr();
    const int status = run_cli(static_cast<int>(words.size()), argv.data(), handlers);
    std::fflush(nullptr);
    errors_ = testing::internal::GetCapturedStderr();
    return status;
  }

  std::string refusal(const std::vector<std::string>& words) {
    EXPECT_EQ(run(words), 2);
    EXPECT_EQ(std::count(errors_.begin(), errors_.end(), '\n'), 1) << errors_;
    return errors_;
  }

  std::string errors_;
  std::optional<ProgramsRequest> request_;
};

TEST_F(RunCommandTest, TakesTheWordsAfterTwoDashesAsTheProgram) {
  EXPECT_EQ(run({"-n", "3", "--scheme", "esync", "--seed", "7", "--", "./program", "--epochs", "2",
                 "--", "-n"}),
            0)
      << errors_;
  ASSERT_TRUE(request_);
  EXPECT_THAT(request_->command, ElementsAre("./program", "--epochs", "2", "--", "-n"));
  EXPECT_EQ(request_->workers, 3U);
  EXPECT_EQ(request_->given, (GivenOptions{{"scheme", "esync"}, {"seed", "7"}}));
  EXPECT_EQ(request_->config.scheme, "esync");
}

TEST_F(RunCommandTest, TakesTheOrderOfTheData) {
  EXPECT_EQ(run({"-n", "2", "--data-order", "leased", "--", "./program"}), 0) << errors_;
  EXPECT_EQ(request_->given, (GivenOptions{{"data-order", "leased"}}));
  EXPECT_THAT(refusal({"--data-order", "sorted", "--", "x"}),
              HasSubstr("--data-order: expected one of auto, fixed, leased"));
}

TEST_F(RunCommandTest, LeavesTheSchemeToTheProgram) {
  EXPECT_EQ(run({"--servers", "2", "--", "./program"}), 0) << errors_;
  EXPECT_EQ(request_->workers, 1U);
  EXPECT_EQ(request_->given, (GivenOptions{{"servers", "2"}}));
  EXPECT_THAT(refusal({"--servers", "2", "--cluster", "none.toml", "--", "./program"}),
              HasSubstr("none.toml"));
}

TEST_F(RunCommandTest, RefusesWhatItCannotStart) {
  EXPECT_THAT(refusal({"-n", "2"}), HasSubstr("after --: syncopate run -n 4 -- ./program"));
  EXPECT_THAT(refusal({"--epochs", "2", "--", "x"}),
              HasSubstr("--epochs is an option of `syncopate train`"));
  EXPECT_THAT(refusal({"-n", "2", "--scheme", "local", "--", "x"}), HasSubstr("found 2 workers"));
  EXPECT_THAT(refusal({"-n", "many", "--", "x"}), HasSubstr("--workers"));
  EXPECT_THAT(refusal({"-n", "0", "--", "x"}),
              HasSubstr("--workers: expected a whole number from 1 to 1024, found 0"));
}

}  // namespace
}  // namespace syncopate::cli
