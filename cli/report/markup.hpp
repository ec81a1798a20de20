#pragma once

#include <string>
#include <string_view>

#include "cli/compare/comparison_report.hpp"
#include "cli/report/plot.hpp"

namespace syncopate::cli {

/// A text in which LaTeX prints every character as it is.
std::string latex_escaped(std::string_view text);

/// A `table` with a caption, in the style of the package booktabs.
std::string latex_of(const TitledTable& table);

/// A `figure` of figures/NAME.pdf; its caption begins with the heading of its section.
std::string latex_of(const Plot& plot, const std::string& heading);

/// A text in which HTML shows every character as it is.
std::string html_escaped(std::string_view text);

std::string html_of(const TitledTable& table);

/// An SVG for an HTML page that contains others: without the header, and with identifiers that
/// begin with `prefix`, because identifiers must be unique in a page.
std::string inline_svg(const std::string& svg, const std::string& prefix);

}  // namespace syncopate::cli
