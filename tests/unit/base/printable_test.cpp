// Goal:   no text of another process acts on a terminal, hides other text, or breaks a JSON line.
// Method: escape sequences, direction overrides and damaged UTF-8 by table; random bytes.

#include "base/printable.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace syncopate {
namespace {

TEST(Printable, KeepsTextInAnyLanguage) {
  for (const char* text : {"", "gpu-old (emulated)", "Größe 3 × 4", "日本語", "🙂"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_TRUE(is_utf8(text));
  }
}

TEST(Printable, ReplacesWhatActsOnATerminal) {
  EXPECT_EQ(printable("a\x1b[2Jb"), "a?[2Jb");
  EXPECT_EQ(printable("a\x1b]0;title\x07"), "a?]0;title?");
  EXPECT_EQ(printable("\x7f\b"), "??");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "?2J")
      << "the one-character form of an escape";
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a?b");
  EXPECT_EQ(printable("abc\xe2\x80\xae"
                      "fed"),
            "abc?fed")
      << "an override of the direction";
}

TEST(Printable, IsOneLine) {
  EXPECT_EQ(printable("one\ntwo\r\n\tthree"), "one two   three");
  EXPECT_EQ(printable_lines("one\n\ttwo\r\x1b"), "one\n\ttwo ?");
}

TEST(Printable, ReplacesBytesThatAreNoCharacter) {
  for (const char* damaged :
       {"\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80", "\xe2\x82"}) {
    EXPECT_FALSE(is_utf8(damaged));
    EXPECT_EQ(printable(damaged), std::string(std::string_view(damaged).size(), '?'));
  }
  EXPECT_EQ(printable("a\xc3(b"), "a?(b");
}

TEST(Printable, GivesUtf8WithoutControlsForAnyBytes) {
  const std::uint64_t seed = 20261122;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  for (int round = 0; round < 5000; ++round) {
    std::string bytes(random.below(12), ' ');
    for (char& byte : bytes) {
      byte = static_cast<char>(random.below(256));
    }
    const std::string text = printable(bytes);
    ASSERT_TRUE(is_utf8(text));
    for (const char byte : text) {
      ASSERT_FALSE(static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f);
    }
    ASSERT_EQ(printable(text), text);
  }
}

TEST(Excerpt, CutsBetweenCharacters) {
  EXPECT_EQ(excerpt("abc", 3), "abc");
  EXPECT_EQ(excerpt("abcd", 3), "abc…");
  EXPECT_EQ(excerpt("äöüß", 2), "äö…");
  EXPECT_EQ(excerpt(std::string(100'000, '.'), 4), "....…");
  EXPECT_EQ(excerpt("a\nb", 3), "a b");
}

}  // namespace
}  // namespace syncopate
