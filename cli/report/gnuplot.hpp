#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/report/plot.hpp"

namespace syncopate::cli {

/// Makes the folder of the figures. Errors: DataError.
void make_figures_folder(const std::filesystem::path& folder);

/// Writes each figure's script as NAME.gp, and draws NAME.svg and NAME.png by `program`. False
/// where there is no such program: then the scripts alone are there.
/// Errors: Error, with the program's own words, where it refuses a script; DataError.
bool draw(const std::vector<Plot>& plots, const std::filesystem::path& folder,
          const std::string& program = "gnuplot");

}  // namespace syncopate::cli
