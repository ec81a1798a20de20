// Goal:   the environment determines the style of the output.
// Method: environments as maps.
#include "cli/view/terminal.hpp"

#include <gtest/gtest.h>

#include <map>

namespace syncopate::cli {
namespace {

Environment with(const std::map<std::string, std::string>& variables) {
  return [variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  };
}

TEST(StyleTest, TakesCharactersFromTheFirstLocaleThatIsSet) {
  EXPECT_TRUE(style_of(with({{"LANG", "C.UTF-8"}})).unicode);
  EXPECT_TRUE(style_of(with({{"LC_CTYPE", "de_DE.utf8"}, {"LANG", "C"}})).unicode);
  EXPECT_FALSE(style_of(with({{"LC_ALL", "C"}, {"LANG", "C.UTF-8"}})).unicode);
  EXPECT_FALSE(style_of(with({})).unicode);
}

TEST(StyleTest, HasNoColoursWhereTheUserWantsNone) {
  EXPECT_TRUE(style_of(with({{"NO_COLOR", ""}})).colour);
  EXPECT_FALSE(style_of(with({{"NO_COLOR", "1"}})).colour);
}

TEST(CanRedrawTest, KnowsTerminalsThatCannot) {
  EXPECT_TRUE(can_redraw(with({{"TERM", "xterm-256color"}})));
  EXPECT_FALSE(can_redraw(with({{"TERM", "dumb"}})));
  EXPECT_FALSE(can_redraw(with({})));
  EXPECT_FALSE(can_redraw(with({{"TERM", "xterm"}, {"OMPI_COMM_WORLD_RANK", "0"}})));
}

}  // namespace
}  // namespace syncopate::cli
