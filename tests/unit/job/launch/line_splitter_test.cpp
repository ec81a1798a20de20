// Goal:   the lines do not depend on how their bytes arrive; of lines that are overwritten only
//         some are passed on, and memory is bounded.
// Method: a text that is split at every offset; a clock that the test advances.
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

/// Returns the lines of a text that arrives within ten seconds in two pieces, cut at `cut`.
std::vector<std::string> lines_at_once(const std::string& text, std::size_t cut) {
  std::vector<std::string> lines;
  LineSplitter splitter([&](std::string_view line) { lines.emplace_back(line); },
                        [] { return TimePoint{}; });
  splitter.add(text.substr(0, cut));
  splitter.add(text.substr(cut));
  splitter.finish();
  return lines;
}

/// The output of tqdm 4.67 for a `trange(2)` within another one.
const std::string nested_bars =
    "\repochs 0/2\n\rsteps 0/2\x1b[A\n\rsteps 1/2\x1b[A\n\rsteps 2/2\x1b[A\n\r         \x1b[A"
    "\repochs 1/2\n\rsteps 0/2\x1b[A\n\rsteps 1/2\x1b[A\n\rsteps 2/2\x1b[A\n\r         \x1b[A"
    "\repochs 2/2\repochs 2/2\n";

TEST(LineSplitterTest, CountsABarBelowAnotherOneAsOverwritten) {
  for (std::size_t cut = 0; cut <= nested_bars.size(); ++cut) {
    SCOPED_TRACE(cut);
    EXPECT_THAT(lines_at_once(nested_bars, cut),
                ElementsAre("epochs 0/2", "steps 0/2", "epochs 2/2"));
  }
}

TEST(LineSplitterTest, KeepsTheLastLineOfABarThatStaysBelowAnotherOne) {
  const std::string staying =
      "\repochs 0/2\n\rsteps 0/2\x1b[A\n\rsteps 1/2\x1b[A\n\rsteps 2/2\x1b[A\rsteps 2/2\n"
      "\repochs 1/2\n\rsteps 0/2\x1b[A\n\rsteps 1/2\x1b[A\n\rsteps 2/2\x1b[A\rsteps 2/2\n"
      "\repochs 2/2\repochs 2/2\n";
  for (std::size_t cut = 0; cut <= staying.size(); ++cut) {
    SCOPED_TRACE(cut);
    EXPECT_THAT(lines_at_once(staying, cut),
                ElementsAre("epochs 0/2", "steps 0/2", "steps 2/2", "steps 2/2", "epochs 2/2"));
  }
}

TEST(LineSplitterTest, KeepsTextBetweenBarsBelowEachOther) {
  // `tqdm.write("text")` clears both bars, writes the text, and draws the bars again.
  const std::string text =
      "\repochs 1/2\n\rsteps 0/2\x1b[A\r          \r\n\r         \r\x1b[Atext\n"
      "\repochs 1/2\n\rsteps 1/2\x1b[A\x1b[0;1mbold\n";
  EXPECT_THAT(lines_at_once(text, 0),
              ElementsAre("epochs 1/2", "steps 0/2", "text", "\x1b[0;1mbold"));
}

TEST(LineSplitterTest, GivesNestedBarsEveryTenSeconds) {
  using namespace std::chrono_literals;
  std::vector<std::string> lines;
  TimePoint now{};
  LineSplitter splitter([&](std::string_view line) { lines.emplace_back(line); },
                        [&] { return now; });
  splitter.add("\router\n");
  for (int second = 0; second < 25; ++second, now += 1s) {
    splitter.add("\n\n\rsteps " + std::to_string(second) + "\x1b[2A");
  }
  EXPECT_THAT(lines, ElementsAre("outer", "", "", "steps 0", "steps 10", "steps 20"));
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
