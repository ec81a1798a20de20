#include "cli/report/report_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/report/report_files.hpp"
#include "cli/report/run_list.hpp"
#include "job/launch/exit_status.hpp"
#include "telemetry/json_lines.hpp"

namespace syncopate::cli {
namespace {

std::string shown_as(ReportFormat format, const std::vector<Setting>& settings,
                     const Report& report) {
  switch (format) {
    case ReportFormat::json: return json_text(json_of(settings)) + "\n";
    case ReportFormat::markdown: return markdown_of(report);
    case ReportFormat::latex: return latex_of(report);
    case ReportFormat::text: break;
  }
  return text_of(report);
}

void write_where(const std::filesystem::path& out, const std::vector<Setting>& settings,
                 const Report& made, bool says_where) {
  for (const std::string& missing : write_report(settings, made, out)) {
    fmt::print(stderr, "syncopate: {}\n", missing);
  }
  if (says_where) {
    fmt::print("\nreport in {}\n", (out / "report.html").string());
  }
}

}  // namespace

int report(const ReportCommand& command) {
  const std::vector<Setting> settings = study_of(read_runs(command.runs), command.options);
  const Report made =
      report_on(settings, {command.reference.value_or(esync_paper())}, command.words);
  fmt::print("{}", shown_as(command.format, settings, made));
  if (command.out) {
    write_where(*command.out, settings, made, command.format == ReportFormat::text);
  }
  return exit_status::success;
}

int compare_and_report(const CompareCommand& command) {
  const int status = compare(command);
  if (status == exit_status::success) {
    const std::vector<Setting> settings =
        study_of(read_runs({command.folder}), {.target = command.common.config.target_accuracy});
    const std::string words = fmt::format("{}  # {}", command.words, command.version);
    write_where(command.folder, settings, report_on(settings, {esync_paper()}, words),
                !command.output.json);
  }
  return status;
}

}  // namespace syncopate::cli
