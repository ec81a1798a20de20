#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/compare/comparison_report.hpp"
#include "cli/report/plot.hpp"
#include "cli/report/published.hpp"
#include "cli/report/study.hpp"

namespace syncopate::cli {

/// One setting of a report, ready to print.
struct ReportSection {
  std::string title;
  std::vector<TitledTable> tables = {};
  TitledTable runs;  ///< a row for each run; in files only
  std::vector<Plot> plots = {};
};

struct Report {
  std::vector<ReportSection> sections = {};
  std::vector<Plot> plots = {};          ///< of several settings
  std::vector<TitledTable> tables = {};  ///< of several settings
  std::vector<std::string> notes = {};   ///< a line for what is unusual about a run
};

Report report_on(const std::vector<Setting>& settings, const std::vector<Published>& published);

/// Tables and notes for a terminal.
std::string text_of(const Report& report);
std::string markdown_of(const Report& report);
/// Needs the package booktabs.
std::string latex_of(const Report& report);
nlohmann::ordered_json json_of(const std::vector<Setting>& settings);

}  // namespace syncopate::cli
