#include "cli/report/plot.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/printable.hpp"
#include "cli/view/table.hpp"

namespace syncopate::cli {
namespace {

constexpr std::size_t png_scale = 3;  ///< 430 dots per inch at the width of a column

constexpr double dots_per_inch = 96;  ///< of the SVG

// All terminals print texts literally: an underscore in a name starts no subscript. Their legends
// have lines of different heights.
constexpr std::string_view frame = R"({data}
do for [format in "svg png pdf"] {{
reset
if (format eq "svg") {{
set terminal svg noenhanced size {width},{height} font 'sans-serif,14' background rgb 'white'
legend_spacing = 1.0
}} else {{ if (format eq "pdf") {{
set terminal pdfcairo noenhanced size {inches_wide}in,{inches_high}in font 'sans-serif,10.5' \
  background rgb 'white'
legend_spacing = 1.29
}} else {{
set terminal pngcairo noenhanced size {wide},{high} font 'sans-serif,10.5' fontscale {scale} \
  linewidth {scale} pointscale {scale} background rgb 'white'
legend_spacing = 1.29
}} }}
set output {name}.'.'.format
set encoding utf8
set border 3 linecolor rgb '#444444'
set tics nomirror out textcolor rgb 'black'
set format '%.6g'
set xtics offset 0,0.4
set grid linecolor rgb '#dddddd' linewidth 0.7 linetype 1
set style fill solid
{drawing}
unset output
}}
)";

}  // namespace

std::string gnuplot_string(const std::string& text) {
  std::string quoted = "'";
  for (const char character : printable(text)) {
    quoted += character == '\'' ? "''" : std::string(1, character);
  }
  return quoted + "'";
}

std::string script_of(const Plot& plot) {
  return fmt::format(frame, fmt::arg("data", plot.data), fmt::arg("width", plot.width),
                     fmt::arg("height", plot.height), fmt::arg("wide", plot.width * png_scale),
                     fmt::arg("high", plot.height * png_scale), fmt::arg("scale", png_scale),
                     fmt::arg("inches_wide", static_cast<double>(plot.width) / dots_per_inch),
                     fmt::arg("inches_high", static_cast<double>(plot.height) / dots_per_inch),
                     fmt::arg("name", gnuplot_string(plot.name)),
                     fmt::arg("drawing", plot.drawing));
}

std::string data_block(const std::string& name, const std::vector<std::string>& rows) {
  return fmt::format("${} << END\n{}\nEND\n", name, fmt::join(rows, "\n"));
}

LegendSize legend_size(const std::vector<std::string>& entries, std::size_t width) {
  // Sizes that gnuplot's svg terminal assumes at 14 points: 0.7 · 14 pixels per character, six
  // characters for the sample of the curve and the gaps beside it, and 21 pixels per line.
  constexpr double character = 9.8;
  constexpr std::size_t beside = 6;
  constexpr std::size_t line = 22;
  std::size_t widest = 1;
  for (const std::string& entry : entries) {
    widest = std::max(widest, beside + width_of(entry));
  }
  const auto fitting = static_cast<std::size_t>(static_cast<double>(width - 10) /
                                                (character * static_cast<double>(widest)));
  const std::size_t columns = std::max<std::size_t>(1, fitting);
  return {columns, 10 + line * ((entries.size() + columns - 1) / columns)};
}

std::string legend_command(const LegendSize& legend) {
  return fmt::format(
      "set key at screen 0.52, screen 0.01 center bottom horizontal maxcols {} Left reverse "
      "samplen 3 spacing legend_spacing\n",
      legend.columns);
}

void add_legend(Plot& plot, const std::vector<std::string>& entries) {
  const LegendSize legend = legend_size(entries, plot.width);
  plot.height += legend.height;
  plot.drawing +=
      legend_command(legend) + fmt::format("set bmargin at screen {:.4f}\n",
                                           static_cast<double>(legend.height + axis_below) /
                                               static_cast<double>(plot.height));
}

std::string numbered(const std::string& name, std::size_t index) {
  return index == 0 ? name : fmt::format("{}-{}", name, index + 1);
}

}  // namespace syncopate::cli
