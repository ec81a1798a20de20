// Goal:   columns of text are aligned for any content.
// Method: examples with characters of several bytes, control characters and cells of all widths.
#include "cli/view/table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace syncopate::cli {
namespace {

using testing::ElementsAre;

TEST(WithoutColoursTest, KeepsEverythingElse) {
  EXPECT_EQ(without_colours("\x1b[31mred\x1b[0m and █"), "red and █");
}

TEST(WidthOfTest, CountsCharactersNotBytes) {
  EXPECT_EQ(width_of(""), 0u);
  EXPECT_EQ(width_of("abc"), 3u);
  EXPECT_EQ(width_of("█▒é"), 3u);
}

TEST(FittedTest, FillsAndCuts) {
  EXPECT_EQ(fitted("ab", 4), "ab  ");
  EXPECT_EQ(fitted("abcdef", 4), "abcd");
  EXPECT_EQ(fitted("éééé", 3), "ééé");
  EXPECT_EQ(fitted("abc", 0), "");
}

TEST(FittedTest, LetsNothingReachTheTerminalThatMovesItsCursor) {
  EXPECT_EQ(fitted("a\x1b[2J\n\t", 8), "a?[2J   ");
}

TEST(GroupedTest, PartsThousands) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(1234567), "1,234,567");
}

TEST(RateFigureTest, HasTwoDigitsAtLeast) {
  EXPECT_EQ(rate_figure(0), "0");
  EXPECT_EQ(rate_figure(-3), "0");
  EXPECT_EQ(rate_figure(std::nan("")), "0");
  EXPECT_EQ(rate_figure(0.254), "0.25");
  EXPECT_EQ(rate_figure(8.96), "9");
  EXPECT_EQ(rate_figure(9.94), "9.9");
  EXPECT_EQ(rate_figure(9.96), "10");
  EXPECT_EQ(rate_figure(12345.6), "12,346");
}

TEST(TableTest, CanBeMarkdown) {
  Table table({{"name", Table::Align::left}, {"size"}});
  table.add({"a", "1"});
  EXPECT_THAT(table.markdown(), ElementsAre("| name | size |", "| --- | ---: |", "| a | 1 |"));
}

TEST(TableTest, AlignsColumnsToTheirWidestCell) {
  Table table({{"name", Table::Align::left}, {"size"}, {"note", Table::Align::left}});
  table.add({"a", "1", "é"});
  table.add({"longer", "1,000", ""});
  EXPECT_THAT(table.lines(),
              ElementsAre("name     size  note", "a           1  é", "longer  1,000"));
}

}  // namespace
}  // namespace syncopate::cli
