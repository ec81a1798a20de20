// Goal:   `-h` of a command with many options prints the most used options; `--help` prints all of
//         them in groups, with the values of each option on a separate line.
// Method: the help texts of commands.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>
#include <vector>

#include "cli/handlers.hpp"
#include "tests/unit/cli/ran_command.hpp"

namespace syncopate::cli {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

std::string help_of(const std::string& command, const std::string& option) {
  const RanCommand ran = run_words({command, option}, Handlers{});
  EXPECT_EQ(ran.status, 0) << ran.err;
  return ran.out;
}

std::vector<std::string> options_in(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream lines(text);
  const std::regex option("^  (?:-.,)?(--[a-z0-9-]+).*");
  std::smatch found;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, found, option)) {
      names.push_back(found[1]);
    }
  }
  return names;
}

TEST(Help, IsShortWithOneLetterAndWholeWithTheWord) {
  for (const char* command : {"train", "coordinator", "compare", "run"}) {
    SCOPED_TRACE(command);
    const std::string brief = help_of(command, "-h");
    const std::string whole = help_of(command, "--help");
    EXPECT_THAT(brief, EndsWith(fmt::format("All options: syncopate {} --help\n", command)));
    EXPECT_THAT(whole, Not(HasSubstr("All options:")));
    const auto all = options_in(whole);
    const auto some = options_in(brief);
    EXPECT_THAT(some, testing::IsSubsetOf(all));
    EXPECT_THAT(some,
                testing::Contains("--scheme").Times(command == std::string("compare") ? 0 : 1));
    EXPECT_LT(2 * some.size(), all.size());
    EXPECT_LE(some.size(), 36U);
  }
  EXPECT_LE(options_in(help_of("train", "-h")).size(), 26U);
}

TEST(Help, OfACommandWithFewOptionsIsOne) {
  EXPECT_EQ(help_of("report", "-h"), help_of("report", "--help"));
  EXPECT_THAT(help_of("report", "-h"), HasSubstr("  -h,--help"));
}

TEST(Help, HasTheValuesOfAnOptionOnALineOfTheirOwn) {
  EXPECT_THAT(help_of("train", "--help"),
              AllOf(HasSubstr("number format of forward passes"),
                    testing::ContainsRegex("\n {30}float32, bf16\n"),
                    testing::ContainsRegex("\n {30}local, ssgd, local-sgd")));
}

}  // namespace
}  // namespace syncopate::cli
