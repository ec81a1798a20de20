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
  std::vector<std::string> method = {};  ///< lines that describe how the runs were made
  std::vector<TitledTable> tables = {};
  TitledTable runs;  ///< a row for each run; in files only
  std::vector<Plot> plots = {};
};

struct Report {
  std::string command = {};  ///< the command that made the report, and its version
  std::vector<ReportSection> sections = {};
  std::vector<Plot> plots = {};          ///< of several settings
  std::vector<TitledTable> tables = {};  ///< of several settings
  std::vector<std::string> notes = {};   ///< a line for what is unusual about a run
};

/// `command`: see `Report::command`.
Report report_on(const std::vector<Setting>& settings, const std::vector<Published>& published,
                 const std::string& command = "");

/// Tables and notes for a terminal.
std::string text_of(const Report& report);
std::string markdown_of(const Report& report);
/// Needs the packages booktabs and graphicx, and the figures as PDF beside it, in figures/.
std::string latex_of(const Report& report);
nlohmann::ordered_json json_of(const std::vector<Setting>& settings);

}  // namespace syncopate::cli
