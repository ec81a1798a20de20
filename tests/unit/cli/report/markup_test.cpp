// Goal:   special characters are escaped in LaTeX and HTML tables, and the identifiers of several
//         figures on one page do not clash.
// Method: every special character; closed texts.
#include "cli/report/markup.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::cli {
namespace {

TitledTable small_table() {
  Table table({{"scheme", Table::Align::left}, {"of a & b"}});
  table.add({"esync:a_b", "50 %"});
  return {"Results <1>", table};
}

TEST(LatexTest, EscapesEverySpecialCharacter) {
  EXPECT_EQ(latex_escaped("a_b & 50 % #1 $x$ {y}"), "a\\_b \\& 50 \\% \\#1 \\$x\\$ \\{y\\}");
  EXPECT_EQ(latex_escaped("\\~^<>|\""),
            "\\textbackslash{}\\textasciitilde{}\\textasciicircum{}\\textless{}\\textgreater{}"
            "\\textbar{}\\textquotedbl{}");
  EXPECT_EQ(latex_escaped("0.9 ± 0.1, 2 ×"), "0.9 $\\pm$ 0.1, 2 $\\times$");
}

TEST(LatexTest, IsATableOfBooktabs) {
  EXPECT_EQ(latex_of(small_table()),
            "\\begin{table}\n\\centering\n\\caption{Results \\textless{}1\\textgreater{}}\n"
            "\\begin{tabular}{lr}\n\\toprule\nscheme & of a \\& b \\\\\n\\midrule\n"
            "esync:a\\_b & 50 \\% \\\\\n\\bottomrule\n\\end{tabular}\n\\end{table}\n");
}

TEST(HtmlTest, EscapesAndAligns) {
  EXPECT_EQ(html_escaped("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
  EXPECT_THAT(html_of(small_table()),
              testing::AllOf(testing::HasSubstr("<h3>Results &lt;1&gt;</h3>"),
                             testing::HasSubstr("<td class=\"left\">esync:a_b</td><td>50 %</td>")));
}

TEST(InlineSvgTest, HasNoHeaderAndIdentifiersOfItsOwn) {
  EXPECT_EQ(inline_svg("<?xml version='1.0'?>\n<svg><g id=\"a\"/><use xlink:href='#a'/>"
                       "<path fill='url(#p1)'/><g id='p1'/></svg>",
                       "fig"),
            "<svg><g id=\"fig-a\"/><use xlink:href='#fig-a'/><path fill='url(#fig-p1)'/>"
            "<g id='fig-p1'/></svg>");
  EXPECT_EQ(inline_svg("no figure", "fig"), "");
}

}  // namespace
}  // namespace syncopate::cli
