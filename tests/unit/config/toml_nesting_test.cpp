// Goal:   a text with such deep nesting that the parser would exhaust the stack is refused in one
//         line before it is parsed; no other text is refused.
// Method: each kind of nesting, up to the bound and beyond it; dots and brackets inside strings and
//         comments; strings with misleading ends.

#include "config/toml_nesting.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/toml_table.hpp"
#include "tests/support/refusal.hpp"

namespace syncopate {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string repeated(const std::string& part, std::size_t times) {
  std::string text;
  for (; times > 0; --times) {
    text += part;
  }
  return text;
}

std::string refusal_of(const std::string& text) {
  return syncopate::refusal([&] { TomlTable::parse(text, "a.toml", ""); });
}

TEST(TomlNesting, RefusesAKeyOfManyDots) {
  constexpr std::size_t many = 40'000;
  for (const std::string& text :
       {repeated("a.", many) + "a = 1\n", "[" + repeated("a.", many) + "a]\n",
        "x = {" + repeated("a . ", many) + "a = 1}\n", "\n" + repeated("'a'.", many) + "a = 1\n",
        "x = '''y''''\n" + repeated("a.", many) + "a = 1\n",
        "x = [\"\"\"y\"\"\"\"\", {" + repeated("a.", many) + "a = 1}]\n",
        "x = '\n" + repeated("a.", many), "1." + repeated("1.", many) + "1 = 1"}) {
    EXPECT_THAT(refusal_of(text), HasSubstr("expected at most 16 dots in a key"))
        << text.substr(0, 40);
  }
}

TEST(TomlNesting, RefusesManyOpenBrackets) {
  constexpr std::size_t many = 300;
  EXPECT_THAT(refusal_of("a = " + repeated("[", many)), HasSubstr("16 open brackets"));
  EXPECT_THAT(refusal_of("a = " + repeated("{b = ", many)), HasSubstr("16 open brackets"));
}

TEST(TomlNesting, NamesThePosition) {
  EXPECT_THAT(refusal_of("a = 1\n\n" + repeated("b.", 20) + "c = 1\n"),
              StartsWith("a.toml:3:34: "));
}

TEST(TomlNesting, TakesTextUpToItsBounds) {
  for (const std::string& text :
       {repeated("a.", 16) + "a = 1", "a = " + repeated("[", 16) + repeated("]", 16),
        repeated("a = 1.5\n", 100), "a = [" + repeated("[0.5], ", 1000) + "]",
        "a = '" + repeated("../", 1000) + "'", "# " + repeated("a.[{", 1000) + "\na = 1",
        "a = \"\\\"" + repeated("[.", 1000) + "\"", "a = '''\n" + repeated("[.\n", 1000) + "'''"}) {
    EXPECT_EQ(too_deep(text), std::nullopt) << text.substr(0, 40);
  }
}

TEST(TomlTableSize, IsBounded) {
  EXPECT_EQ(refusal_of(repeated("# 4567\n", 200'000)),
            "a.toml: expected at most 1048576 bytes of TOML, found 1400000; name another file");
  EXPECT_EQ(refusal_of("a = 1\n" + repeated("# 4567\n", 1000)), "no ConfigError");
}

TEST(TomlMessages, QuoteTheLineAndSayWhatToDo) {
  EXPECT_EQ(refusal_of("a = 1\nb = \n"),
            "a.toml:2:5: expected TOML (key = value, [table] or # comment), found 'b ='; correct "
            "it");
  EXPECT_EQ(refusal_of("a = 1\na = 2\n"),
            "a.toml:2:5: expected each key and table once, found 'a = 2' again; remove one of "
            "them");
  EXPECT_THAT(refusal_of("\x1b[2J = 1\n"), HasSubstr("found '?[2J = 1'"));
  EXPECT_THAT(refusal_of("a = '\xff'\n"), HasSubstr("expected TOML"));
}

}  // namespace
}  // namespace syncopate
