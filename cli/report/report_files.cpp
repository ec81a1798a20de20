#include "cli/report/report_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.hpp"
#include "cli/report/gnuplot.hpp"
#include "cli/report/markup.hpp"
#include "telemetry/json_lines.hpp"

namespace syncopate::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view page_begin = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Syncopate: report</title>
<style>
body { font: 16px/1.5 sans-serif; color: #111; background: #fff; max-width: 1040px; }
body { margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.6em; } h3 { font-size: 1em; }
h2 { font-size: 1.3em; margin-top: 2em; border-bottom: 1px solid #999; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85em; }
table { border-top: 2px solid #111; border-bottom: 2px solid #111; }
th { border-bottom: 1px solid #111; text-align: right; } td { text-align: right; }
th, td { padding: 0.2em 0.7em; white-space: nowrap; } .left { text-align: left; }
.figures { display: flex; flex-wrap: wrap; gap: 1.5em; align-items: flex-start; }
figure { margin: 0; width: 480px; max-width: 100%; break-inside: avoid; }
figure svg { width: 100%; height: auto; }
figcaption { font-size: 0.85em; }
@media print {
  body { font-size: 10pt; max-width: none; margin: 0; }
  figure { width: 47%; }
  h2, h3 { break-after: avoid; }
}
</style>
</head>
<body>
<h1>Report</h1>
)";

std::string figures_html(const std::vector<Plot>& plots, const fs::path& folder) {
  std::string text;
  for (const Plot& plot : plots) {
    const fs::path file = folder / (plot.name + ".svg");
    if (is_there(file)) {
      text += fmt::format("<figure>\n{}\n<figcaption>{}</figcaption>\n</figure>\n",
                          inline_svg(read_file(file), plot.name), html_escaped(plot.caption));
    }
  }
  return text.empty() ? "" : "<div class=\"figures\">\n" + text + "</div>\n";
}

std::string tables_html(const std::vector<TitledTable>& tables) {
  std::string text;
  for (const TitledTable& one : tables) {
    text += html_of(one);
  }
  return text;
}

std::string notes_html(const std::vector<std::string>& notes) {
  std::string items;
  for (const std::string& note : notes) {
    items += fmt::format("<li>{}</li>\n", html_escaped(note));
  }
  return items.empty() ? "" : "<h2>Notes</h2>\n<ul>\n" + items + "</ul>\n";
}

std::vector<Plot> all_plots(const Report& report) {
  std::vector<Plot> plots;
  for (const ReportSection& section : report.sections) {
    plots.insert(plots.end(), section.plots.begin(), section.plots.end());
  }
  plots.insert(plots.end(), report.plots.begin(), report.plots.end());
  return plots;
}

}  // namespace

std::string html_page(const Report& report, const fs::path& figures) {
  std::string page(page_begin);
  page += report.command.empty()
              ? ""
              : fmt::format("<p><code>{}</code></p>\n", html_escaped(report.command));
  for (const ReportSection& section : report.sections) {
    page += fmt::format("<h2>{}</h2>\n<p>{}</p>\n{}{}{}", html_escaped(section.title),
                        html_escaped(fmt::format("{}", fmt::join(section.method, " "))),
                        figures_html(section.plots, figures), tables_html(section.tables),
                        html_of(section.runs));
  }
  if (!report.plots.empty() || !report.tables.empty()) {
    page += "<h2>All settings</h2>\n" + figures_html(report.plots, figures) +
            tables_html(report.tables);
  }
  return page + notes_html(report.notes) + "</body>\n</html>\n";
}

std::vector<std::string> write_report(const std::vector<Setting>& settings, const Report& report,
                                      const fs::path& folder) {
  const fs::path figures = folder / "figures";
  make_figures_folder(figures);
  // The tables first: they need no other program.
  write_file(folder / "report.md", markdown_of(report));
  write_file(folder / "report.tex", latex_of(report));
  write_file(folder / "report.json", json_text(json_of(settings), 2) + "\n");
  std::vector<std::string> missing = draw(all_plots(report), figures);
  write_file(folder / "report.html", html_page(report, figures));
  return missing;
}

}  // namespace syncopate::cli
