// Goal:   every numeric option of every command refuses absurd numbers in one line that names the
//         option.
// Method: the test finds the numeric options in the help text of each command, and passes whole
//         command lines to `run_cli`.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "cli/compare/comparison.hpp"
#include "cli/handlers.hpp"
#include "tests/unit/cli/ran_command.hpp"

namespace syncopate::cli {
namespace {

RanCommand run_words(const std::vector<std::string>& words) {
  const Handlers none{};  // a command line that is accepted ends in std::bad_function_call
  return cli::run_words(words, none);
}

/// Returns the options that the help text of a command lists with a number as value.
std::vector<std::string> numeric_options(const std::string& command) {
  const std::regex option("^  --([a-z0-9-]+) (N|X|S|SECONDS|STEPS|EPOCHS|SAMPLES|PERIOD)( .*|)$");
  std::istringstream lines(run_words({command, "--help"}).out);
  std::vector<std::string> names;
  std::smatch found;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, found, option)) {
      names.push_back(found[1]);
    }
  }
  return names;
}

/// Returns the words that a command requires before its options.
std::vector<std::string> beginning_of(const std::string& command, const std::string& option) {
  const std::map<std::string, std::vector<std::string>> beginnings{
      {"coordinator", {"coordinator", "--listen", "127.0.0.1:0"}},
      {"worker", {"worker", "--join", "127.0.0.1:1"}},
      {"server", {"server", "--join", "127.0.0.1:1"}},
      {"compare", {"compare", "--schemes", "ssgd"}},
      {"data", {"data", "--order"}}};
  const std::map<std::string, std::string> benchmarks{
      {"ranks", "allreduce"}, {"workers", "push-pull"}, {"servers", "push-pull"},
      {"batch-size", "step"}, {"threads", "step"},      {"image-size", "step"},
      {"seconds", "latency"}, {"rounds", "latency"}};
  if (command == "bench") {
    const auto benchmark = benchmarks.find(option);
    EXPECT_NE(benchmark, benchmarks.end()) << "which benchmark has --" << option << "?";
    return {command, benchmark == benchmarks.end() ? "step" : benchmark->second};
  }
  const auto found = beginnings.find(command);
  return found == beginnings.end() ? std::vector<std::string>{command} : found->second;
}

void expect_refused(const std::string& command, const std::string& option,
                    const std::string& text) {
  std::vector<std::string> words = beginning_of(command, option);
  words.push_back(fmt::format("--{}={}", option, text));
  if (command == "run") {
    words.insert(words.end(), {"--", "./program"});
  }
  SCOPED_TRACE(fmt::format("{} --{} {}", command, option, text));
  const RanCommand ran = run_words(words);
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  EXPECT_THAT(ran.err, testing::StartsWith(fmt::format("syncopate: --{}: expected", option)));
}

TEST(NumericOptions, RefuseAbsurdNumbersInEveryCommand) {
  std::size_t options = 0;
  for (const char* command : {"train", "coordinator", "worker", "server", "compare", "report",
                              "bench", "networks", "data", "run"}) {
    for (const std::string& option : numeric_options(command)) {
      ++options;
      for (const char* text : {"1e300", "-1", "nan"}) {
        expect_refused(command, option, text);
      }
      const bool wide = option == "seed" || option == "learning-rate" || option == "global-lr" ||
                        option == "server-learning-rate";
      if (!wide) {
        expect_refused(command, option, "4294967295");
      }
    }
  }
  EXPECT_GT(options, 100U) << "the help texts list them in another form";
}

TEST(Words, ThatNoFileHoldsAreRefused) {
  const auto refusal = [](const std::vector<std::string>& words) {
    const RanCommand ran = run_words(words);
    EXPECT_EQ(ran.status, 2) << ran.err;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    EXPECT_LT(ran.err.size(), 400U);
    return ran.err;
  };
  const std::string deep(5000, 'a');
  for (const std::string option : {"--run-dir", "--resume", "--config", "--cluster"}) {
    EXPECT_THAT(refusal({"train", option, deep}),
                testing::HasSubstr(option + ": expected a path of at most 3840 bytes"));
    EXPECT_THAT(refusal({"train", option, "runs/\xff\x1b[2J"}),
                testing::HasSubstr(option + ": expected text in UTF-8, found other bytes: "
                                            "'runs/?"
                                            "?[2J'"));
  }
  EXPECT_THAT(refusal({"compare", "--schemes", "ssgd", "--out", deep}),
              testing::HasSubstr("--out: expected a path"));
  EXPECT_THAT(refusal({"\x1b[2J\xff"}), testing::HasSubstr("unknown command '?[2J?'"));
  EXPECT_THAT(refusal({"train", "--config", "/"}), testing::HasSubstr("cannot read /"));
}

TEST(Words, OfAFileOrAFolderWithoutANameAreRefused) {
  const auto expect_refused = [](std::vector<std::string> words, const std::string& option,
                                 const std::string& kind) {
    words.insert(words.begin() + 1, {option, ""});
    const RanCommand ran = run_words(words);
    EXPECT_EQ(ran.status, 2) << ran.err;
    EXPECT_EQ(ran.err,
              fmt::format("syncopate: {0}: expected a {1}, found an empty name; name one, or leave "
                          "out {0}\n",
                          option, kind));
  };
  expect_refused({"train"}, "--run-dir", "folder");
  expect_refused({"train"}, "--data-dir", "folder");
  expect_refused({"train"}, "--cluster", "file");
  expect_refused({"coordinator", "--listen", "127.0.0.1:0"}, "--run-dir", "folder");
  expect_refused({"train"}, "--resume", "folder");
  expect_refused({"train"}, "--config", "file");
  expect_refused({"run", "--", "true"}, "--run-dir", "folder");
  expect_refused({"run", "--", "true"}, "--cluster", "file");
  expect_refused({"compare", "--schemes", "ssgd"}, "--cluster", "file");
  expect_refused({"compare", "--schemes", "ssgd"}, "--out", "folder");
  expect_refused({"doctor"}, "--run-dir", "folder");
}

TEST(Compare, RefusesSeedsBeyondTheLast) {
  const RanCommand ran =
      run_words({"compare", "--schemes", "ssgd", "--seed", "9223372036854775807"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.err, testing::HasSubstr("--seeds: expected seeds up to 9223372036854775807"));
}

TEST(RunCli, LetsAWriteBeyondTheLimitFail) {
  std::signal(SIGXFSZ, SIG_DFL);
  run_words({"version"});
  EXPECT_EQ(std::signal(SIGXFSZ, SIG_DFL), SIG_IGN);
}

}  // namespace
}  // namespace syncopate::cli
