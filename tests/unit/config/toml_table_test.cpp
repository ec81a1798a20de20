// Goal:   TOML is read strictly, with the position of each error, and values are written as they
//         are read.
// Method: small documents. tests/unit/device and tests/unit/spec read whole files.

#include "config/toml_table.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/errors.hpp"
#include "tests/support/refusal.hpp"

namespace syncopate {
namespace {

constexpr std::string_view known[] = {"rate", "name"};

std::map<std::string, OptionValue> values_of(const std::string& text) {
  std::map<std::string, OptionValue> values;
  TomlTable::parse(text, "a.toml", "")
      .for_each(
          [&](std::string_view key, const OptionValue& value) {
            values[std::string(key)] = value;
            return key != "other" && key != "ratee";
          },
          known);
  return values;
}

TEST(TomlTable, PassesEachValueInItsType) {
  const auto values = values_of("rate = 0.5\nname = 'x'\ncount = 3\non = true\nlist = [1]\n");
  EXPECT_EQ(values.at("rate"), OptionValue(0.5));
  EXPECT_EQ(values.at("name"), OptionValue(std::string("x")));
  EXPECT_EQ(values.at("count"), OptionValue(std::int64_t{3}));
  EXPECT_EQ(values.at("on"), OptionValue(true));
  EXPECT_EQ(values.at("list"), OptionValue());
}

TEST(TomlTable, RefusesAnUnknownKeyAtItsPosition) {
  EXPECT_EQ(refusal([] { values_of("rate = 1\n  ratee = 2\n"); }),
            "a.toml:2:3: unknown key 'ratee'; did you mean 'rate'?");
  EXPECT_EQ(refusal([] { values_of("other = 2\n"); }), "a.toml:1:1: unknown key 'other'");
}

TEST(TomlTable, GivesAnErrorThePositionOfItsValue) {
  const auto table = TomlTable::parse("rate = -1\n", "a.toml", "");
  const auto refuse = [](std::string_view, const OptionValue&) -> bool {
    throw ConfigError("expected a number above 0");
  };
  EXPECT_EQ(refusal([&] { table.for_each(refuse, known); }),
            "a.toml:1:8: rate: expected a number above 0");
}

TEST(TomlTable, SaysThatAKnownKeyHasNoSingleValueAndWhatToWrite) {
  const std::string before = "name: expected a text in quotes, a number, true or false, found ";
  EXPECT_EQ(refusal([] { values_of("name = ['a', 'b']\n"); }),
            "a.toml:1:8: " + before +
                "an array; write one value, several as one text with commas: 'a,b'");
  EXPECT_EQ(refusal([] { values_of("[name]\na = 1\n"); }),
            "a.toml:1:1: " + before + "a table; write one value: key = VALUE");
  EXPECT_EQ(refusal([] { values_of("name = 2026-11-26\n"); }),
            "a.toml:1:8: " + before + "a date; write a text in quotes");
}

TEST(TomlTable, SaysThatANumberIsBeyondItsRange) {
  for (const char* number : {"9223372036854775808", "-9223372036854775809"}) {
    EXPECT_THAT(
        refusal([&] { TomlTable::parse(fmt::format("rate = {}\n", number), "a.toml", ""); }),
        testing::EndsWith(fmt::format("expected a number of 64 bits, a whole one from "
                                      "-9223372036854775808 to 9223372036854775807, found "
                                      "'rate = {}'; write one in that range",
                                      number)));
  }
}

TEST(TomlTable, RefusesTextThatIsNotToml) {
  EXPECT_THAT(refusal([] { TomlTable::parse("a = \n", "a.toml", ""); }),
              testing::StartsWith("a.toml:1:"));
}

TEST(TomlTable, KeepsTheDocumentOfItsTables) {
  const auto inner = [] {
    return TomlTable::parse("[link]\nrate = 2\n", "a.toml", "a document").table("link");
  }();
  ASSERT_TRUE(inner);
  EXPECT_EQ(inner->number("rate", {0, 10}), 2);
}

TEST(ToToml, IsReadBack) {
  EXPECT_EQ(to_toml(OptionValue(std::string("a\"b"))), "'a\"b'");
  EXPECT_EQ(to_toml(OptionValue(0.5)), "0.5");
  EXPECT_EQ(to_toml(OptionValue(true)), "true");
}

TEST(ToToml, EscapesTheLineEndsOfAText) {
  EXPECT_EQ(to_toml(OptionValue(std::string("a\n'''b"))), "\"a\\n'''b\"");
  EXPECT_EQ(to_toml(OptionValue(std::string("a\"b"))), "'a\"b'");
}

}  // namespace
}  // namespace syncopate
