// Goal:   the lines do not depend on how their bytes arrive; of those that are overwritten some
//         pass, and memory is bounded.
// Method: a text that is split at every offset; a clock of the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "job/launch/descriptor.hpp"

namespace syncopate {
namespace {

using testing::ElementsAre;

TEST(LineSplitterTest, GivesTheSameLinesWhereverTheTextIsCut) {
  const std::string text = "one\n\nthree\nrest";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    SCOPED_TRACE(cut);
    std::vector<std::string> lines;
    LineSplitter splitter([&](std::string_view line) { lines.emplace_back(line); });
    splitter.add(text.substr(0, cut));
    splitter.add(text.substr(cut));
    EXPECT_THAT(lines, ElementsAre("one", "", "three"));
    splitter.finish();
    splitter.finish();
    EXPECT_THAT(lines, ElementsAre("one", "", "three", "rest"));
  }
}

TEST(LineSplitterTest, GivesALineThatIsOverwrittenEveryTenSeconds) {
  using namespace std::chrono_literals;
  std::vector<std::string> lines;
  TimePoint now{};
  LineSplitter splitter([&](std::string_view line) { lines.emplace_back(line); },
                        [&] { return now; });
  for (int second = 0; second < 25; ++second, now += 1s) {
    splitter.add("\r" + std::to_string(second) + " of 25");
  }
  splitter.add("\r25 of 25\nnext\r");
  EXPECT_THAT(lines, ElementsAre("0 of 25", "10 of 25", "20 of 25", "25 of 25"));
  splitter.add("\n");
  splitter.add("last\r");
  splitter.finish();
  EXPECT_THAT(lines, ElementsAre("0 of 25", "10 of 25", "20 of 25", "25 of 25", "next", "last"));
}

TEST(LineSplitterTest, GivesALineWithoutEndInParts) {
  std::size_t bytes = 0;
  LineSplitter splitter([&](std::string_view line) { bytes += line.size(); });
  const std::string dots(1000, '.');
  for (int i = 0; i < 2000; ++i) splitter.add(dots);
  EXPECT_GT(bytes, 1'000'000U);
  splitter.finish();
  EXPECT_EQ(bytes, 2'000'000U);
}

}  // namespace
}  // namespace syncopate
