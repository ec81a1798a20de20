#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/errors.hpp"
#include "cli/command.hpp"
#include "cli/report/report_command.hpp"
#include "config/option.hpp"
#include "config/text.hpp"

namespace syncopate::cli {
namespace {

constexpr const char* report_examples = R"(Examples:
  syncopate report runs/* --out report
  syncopate report comparisons/paper --format latex
  syncopate report runs/esync-1 runs/ssgd-1 --labels ESync,SSGD --target 0.8 --out report

--out FOLDER gets the report: report.html needs no other file, and figures/ has each figure as SVG,
PDF and PNG. Drawing needs gnuplot (Debian: gnuplot-nox).)";

constexpr std::array<std::pair<std::string_view, ReportFormat>, 4> report_formats{
    {{"text", ReportFormat::text},
     {"json", ReportFormat::json},
     {"markdown", ReportFormat::markdown},
     {"latex", ReportFormat::latex}}};

ReportFormat format_of(const CLI::App& app) {
  const std::string name = given(app, "--format").value_or("text");
  const auto found = std::find_if(report_formats.begin(), report_formats.end(),
                                  [&](const auto& one) { return one.first == name; });
  if (found == report_formats.end()) {
    throw ConfigError(
        fmt::format("--format: expected text, json, markdown or latex, found '{}'", name));
  }
  return found->second;
}

std::optional<double> target_of(const CLI::App& app) {
  const auto text = given(app, "--target");
  if (!text) {
    return std::nullopt;
  }
  const auto target = number_in<double>(*text);
  if (!target || !(*target > 0 && *target <= 1)) {
    throw ConfigError(
        fmt::format("--target: expected an accuracy above 0 and at most 1, found '{}'", *text));
  }
  return target;
}

std::vector<std::string> labels_of(const CLI::App& app) {
  const auto text = given(app, "--labels");
  const auto entries = text ? entries_of(*text) : std::vector<std::string_view>{};
  return {entries.begin(), entries.end()};
}

ReportCommand report_command_of(const CLI::App& app) {
  ReportCommand command{.runs = {},
                        .format = format_of(app),
                        .options = {.target = target_of(app), .labels = labels_of(app)}};
  if (const auto file = given(app, "--reference")) {
    command.reference = read_published(*file);
  }
  if (const auto out = given(app, "--out")) {
    command.out = *out;
  }
  for (const std::string& run : app.get_option("runs")->results()) {
    check_path(run);
    command.runs.emplace_back(run);
  }
  command.words = fmt::format("{}  # {}", words_of(app), version_line());
  if (command.runs.empty()) {
    throw ConfigError(
        "report needs the folders of runs or of comparisons: syncopate report runs/*");
  }
  return command;
}

}  // namespace

Command add_report(CLI::App& root) {
  CLI::App* app =
      root.add_subcommand("report", "Make tables and figures from run folders and comparisons.");
  app->add_option(
         "runs", [](const CLI::results_t&) { return true; }, "folders of runs or of comparisons")
      ->type_name("FOLDER")
      ->expected(1, -1)
      ->allow_extra_args();
  add_value(*app, "out", "FOLDER", "folder for report.html, the tables and the figures");
  add_value(*app, "format", "NAME",
            "format of the printed tables: text, json, markdown, latex [text]");
  add_value(*app, "target", "X",
            "test accuracy to which times are measured [that of the runs, or else the highest "
            "multiple of 0.05 that more than half of the runs of each scheme reached]");
  add_value(*app, "labels", "LIST", "names of the schemes, in the order of the tables");
  add_value(*app, "reference", "FILE",
            "published figures to show beside the measured ones [those of ESync]");
  app->footer(report_examples);
  return {app, [app] { return report(report_command_of(*app)); }};
}

}  // namespace syncopate::cli
