#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace syncopate::cli {

/// A figure: gnuplot draws it as SVG, PNG and PDF.
struct Plot {
  std::string name;         ///< of its files: "accuracy-time"
  std::string caption;      ///< what it shows, in words
  std::size_t width = 480;  ///< of the SVG, as wide as one column: 14-point text prints as 7 points
  std::size_t height = 340;
  std::string data = {};     ///< named data blocks of gnuplot
  std::string drawing = {};  ///< commands, carried out once for each of the files
};

/// A text as gnuplot's string, without control characters.
std::string gnuplot_string(const std::string& text);

/// The whole script, which writes NAME.svg, NAME.png and NAME.pdf beside itself.
std::string script_of(const Plot& plot);

/// A named data block. `rows`: numbers separated by spaces, or `gnuplot_string`s.
std::string data_block(const std::string& name, const std::vector<std::string>& rows);

/// The layout of a legend below a figure: entries stand side by side as far as they fit.
struct LegendSize {
  std::size_t columns = 1;
  std::size_t height = 0;  ///< pixels, with a margin
};
LegendSize legend_size(const std::vector<std::string>& entries, std::size_t width);

/// Places the legend at the bottom of the figure.
std::string legend_command(const LegendSize& legend);

/// Pixels between the frame of a drawing and its legend, for tics and the title of the axis.
constexpr std::size_t axis_below = 64;

/// Increases the figure's height by that of a legend, and places the legend at the bottom.
void add_legend(Plot& plot, const std::vector<std::string>& entries);

/// "accuracy-time" for one setting of a report, "accuracy-time-2" for the second.
std::string numbered(const std::string& name, std::size_t index);

}  // namespace syncopate::cli
