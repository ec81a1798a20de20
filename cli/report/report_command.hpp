#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/compare/comparison.hpp"
#include "cli/report/published.hpp"
#include "cli/report/study.hpp"

namespace syncopate::cli {

enum class ReportFormat { text, json, markdown, latex };

/// The parsed command line of `syncopate report`.
struct ReportCommand {
  std::vector<std::filesystem::path> runs;        ///< run folders, or folders of comparisons
  std::optional<std::filesystem::path> out = {};  ///< of report.html and the figures
  ReportFormat format = ReportFormat::text;
  StudyOptions options = {};
  std::optional<Published> reference = {};  ///< in place of ESync's
  std::string words = {};                   ///< the command line, and the version
};

/// Prints the tables, and writes the report if `out` is given. Returns the exit status. Errors:
/// those of `read_runs`, `study_of` and `write_report`.
int report(const ReportCommand& command);

/// Carries out a comparison, and writes its report into its folder. Errors: those of `compare` and
/// `write_report`.
int compare_and_report(const CompareCommand& command);

}  // namespace syncopate::cli
