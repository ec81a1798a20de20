#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/report/report.hpp"

namespace syncopate::cli {

/// A page that needs no other file: the tables, and the figures whose NAME.svg is in the folder
/// `figures`. A figure without this file is dropped.
std::string html_page(const Report& report, const std::filesystem::path& figures);

/// Writes report.html, report.md, report.tex and report.json, and the figures below figures/, into
/// `folder`, which is made. Returns the lines of `draw` about missing figures. Errors: DataError.
std::vector<std::string> write_report(const std::vector<Setting>& settings, const Report& report,
                                      const std::filesystem::path& folder);

}  // namespace syncopate::cli
