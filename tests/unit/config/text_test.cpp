// Goal:   option values are parsed strictly, and for a misspelt name the intended one is suggested.
// Method: a table of texts for each function.

#include "config/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace syncopate {
namespace {

using testing::ElementsAre;

TEST(NumberIn, TakesTheWholeText) {
  EXPECT_EQ(number_in<std::int64_t>("-12"), -12);
  EXPECT_EQ(number_in<double>("1e-3"), 0.001);
  EXPECT_EQ(number_in<std::uint32_t>("4294967295"), 4294967295U);
  for (const char* text : {"", " 1", "1 ", "1x", "x", "1.5", "4294967296", "-1"}) {
    EXPECT_FALSE(number_in<std::uint32_t>(text)) << text;
  }
}

TEST(LeadingNumber, LeavesTheRest) {
  const auto found = leading_number<double>("0.5epochs");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->number, 0.5);
  EXPECT_EQ(found->rest, "epochs");
  EXPECT_FALSE(leading_number<double>("epochs"));
}

TEST(Trimmed, DropsTheSpacesAround) {
  EXPECT_EQ(trimmed("  a b "), "a b");
  EXPECT_EQ(trimmed("   "), "");
}

TEST(EntriesOf, AreSeparatedByCommas) {
  EXPECT_THAT(entries_of("a,b,,c"), ElementsAre("a", "b", "", "c"));
  EXPECT_THAT(entries_of(""), ElementsAre(""));
}

TEST(Alternatives, AreEnumerated) {
  const std::vector<std::string_view> names{"a", "b", "c"};
  EXPECT_EQ(alternatives(names), "a, b or c");
  EXPECT_EQ(alternatives(std::span(names).first(2)), "a or b");
  EXPECT_EQ(alternatives(std::span(names).first(1)), "a");
}

TEST(Suggestion, IsTheNearestNameOrNone) {
  const std::vector<std::string_view> names{"train", "bench", "doctor"};
  EXPECT_EQ(suggestion("trian", names), "; did you mean 'train'?");
  EXPECT_EQ(suggestion("tr", names), "; did you mean 'train'?");
  EXPECT_EQ(suggestion("docter", names), "; did you mean 'doctor'?");
  EXPECT_EQ(suggestion("zebra", names), "");
}

}  // namespace
}  // namespace syncopate
