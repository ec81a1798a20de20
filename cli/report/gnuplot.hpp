#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/report/plot.hpp"

namespace syncopate::cli {

/// Makes the folder of the figures. Errors: DataError.
void make_figures_folder(const std::filesystem::path& folder);

/// Writes each figure's script as NAME.gp, and draws NAME.svg, NAME.png and NAME.pdf by `program`.
/// Returns a line for each figure that the program refuses, with the program's message, or one line
/// if there is no such program. The scripts of missing figures are written in any case. Errors:
/// DataError.
std::vector<std::string> draw(const std::vector<Plot>& plots, const std::filesystem::path& folder,
                              const std::string& program = "gnuplot");

}  // namespace syncopate::cli
