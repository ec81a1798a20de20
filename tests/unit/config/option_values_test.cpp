// Goal:   an option stores a valid value in its own type, and refuses every other value with a
//         message that says what was expected.
// Method: one option of each type, set from text and read back; values at the bounds and beyond.

#include "config/option_values.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.hpp"

namespace syncopate {
namespace {

enum class Colour { red, blue };
constexpr auto names_of(Colour) {
  return std::to_array<Named<Colour>>({{"red", Colour::red}, {"blue", Colour::blue}});
}

template <class T>
constexpr Option<T> option_of(std::string_view name, T initial = {}, Limits limits = {}) {
  return {.name = name, .group = "", .value = "", .help = "", .initial = initial, .limits = limits};
}

constexpr auto flag = option_of<bool>("flag");
constexpr auto count = option_of<std::uint32_t>("count", 4, at_least_one);
constexpr auto share = option_of("share", 0.5, fraction);
constexpr auto rate = option_of<std::optional<double>>("rate", std::nullopt, positive);
constexpr auto colour = option_of("colour", Colour::blue);

template <class T>
void give(OptionValues& values, const Option<T>& option, std::string_view text) {
  const OptionSpec spec = spec_of(option);
  values.set(spec, value_in(spec, text));
}

template <class T>
std::string refusal(const Option<T>& option, std::string_view text) {
  try {
    value_in(spec_of(option), text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

TEST(OptionValues, BeginWithTheInitialOnes) {
  const OptionValues values;
  EXPECT_FALSE(values[flag]);
  EXPECT_EQ(values[count], 4U);
  EXPECT_EQ(values[share], 0.5);
  EXPECT_EQ(values[rate], std::nullopt);
  EXPECT_EQ(values[colour], Colour::blue);
}

TEST(OptionValues, AreThoseGiven) {
  OptionValues values;
  give(values, flag, "true");
  give(values, count, "1000000000");
  give(values, share, "1");
  give(values, rate, "2.5");
  give(values, colour, "red");
  EXPECT_TRUE(values[flag]);
  EXPECT_EQ(values[count], 1'000'000'000U);
  EXPECT_EQ(values[share], 1.0);
  EXPECT_EQ(values[rate], 2.5);
  EXPECT_EQ(values[colour], Colour::red);
  give(values, rate, "auto");
  EXPECT_EQ(values[rate], std::nullopt);
  EXPECT_EQ(to_text(values.get(spec_of(colour))), "red");
}

TEST(OptionValues, AreAlikeHoweverTheyWereSet) {
  OptionValues given;
  give(given, count, "5");
  OptionValues set;
  EXPECT_NE(given, set);
  set.set(count, 5);
  EXPECT_EQ(given, set);
  give(given, count, "4");
  EXPECT_EQ(given, OptionValues()) << "the initial value is as good as none";
}

TEST(Option, RefusesWhatItCannotBe) {
  EXPECT_EQ(refusal(flag, "yes"), "expected true or false, found 'yes'");
  EXPECT_EQ(refusal(count, "0"), "expected a whole number from 1 to 1000000000, found 0");
  EXPECT_EQ(refusal(count, "1.5"), "expected a whole number from 1 to 1000000000, found '1.5'");
  EXPECT_EQ(refusal(count, "4294967296"),
            "expected a whole number from 1 to 1000000000, found 4294967296");
  EXPECT_EQ(refusal(count, "1e6"), "expected a whole number from 1 to 1000000000, found '1e6'");
  EXPECT_EQ(refusal(share, "0"), "expected a number above 0 to 1, found 0");
  EXPECT_EQ(refusal(share, "auto"), "expected a number above 0 to 1, found 'auto'");
  EXPECT_EQ(refusal(rate, "-1"), "expected a number above 0 to 1000000000, found -1");
  EXPECT_EQ(refusal(colour, "bleu"),
            "expected one of red, blue, found 'bleu'; did you mean 'blue'?");
}

TEST(Option, RefusesTextThatNoFileHolds) {
  const auto path = option_of<std::filesystem::path>("folder");
  const auto name = option_of<std::string>("name");
  EXPECT_EQ(refusal(path, "runs/\xff\x1b"),
            "expected text in UTF-8, found other bytes: 'runs/?"
            "?'");
  EXPECT_EQ(refusal(name, "\xc3("), "expected text in UTF-8, found other bytes: '?('");
  EXPECT_EQ(refusal(name, std::string_view("a\0b", 3)),
            "expected text without the character NUL, found 'a?b'");
  EXPECT_EQ(refusal(path, std::string(5000, '/')).substr(0, 57),
            "expected a path of at most 3840 bytes, found 5000 bytes: ");
  EXPECT_EQ(refusal(path, "a/" + std::string(256, 'b') + "/c").substr(0, 67),
            "expected names of at most 255 bytes in a path, found one of 256 byt");
  EXPECT_EQ(refusal(path, "runs/größer\n"), "no ConfigError");
}

TEST(Option, QuotesOnlyTheBeginningOfALongValue) {
  EXPECT_EQ(refusal(share, std::string(5000, 'x')),
            "expected a number above 0 to 1, found '" + std::string(80, 'x') + "…'");
}

TEST(Option, IsNamedInFilesWithoutHyphens) {
  EXPECT_EQ(spec_of(option_of<bool>("push-every-step")).key(), "push_every_step");
}

}  // namespace
}  // namespace syncopate
