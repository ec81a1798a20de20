// Goal:   the lines do not depend on how their bytes arrive.
// Method: a text that is split at every offset.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace syncopate
