#include "cli/report/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "cli/report/bar_plots.hpp"
#include "cli/report/curve_plots.hpp"
#include "cli/report/log_lines.hpp"
#include "cli/report/markup.hpp"
#include "cli/report/timeline_plot.hpp"

namespace syncopate::cli {
namespace {

using Json = nlohmann::ordered_json;
using Align = Table::Align;

std::vector<ContestantFigures> figures_in(const Setting& setting) {
  std::vector<ContestantFigures> all;
  std::transform(setting.groups.begin(), setting.groups.end(), std::back_inserter(all),
                 [](const RunGroup& group) { return group.figures; });
  return all;
}

double trained_seconds(const RunRecord& run) {
  if (run.kept) {
    return run.kept->training_seconds;
  }
  const double last = run.evaluations.empty() ? 0 : run.evaluations.back().training_seconds;
  return run.summary.is_object() ? number_at(run.summary, "training_seconds", last) : last;
}

std::string last_accuracy(const RunRecord& run) {
  const auto accuracy = run.kept                  ? run.kept->accuracy
                        : run.evaluations.empty() ? std::nullopt
                                                  : std::optional(run.evaluations.back().accuracy);
  return accuracy ? fmt::format("{:.4f}", *accuracy) : "-";
}

TitledTable runs_table(const Setting& setting) {
  Table table({{"run", Align::left},
               {"scheme", Align::left},
               {"seed"},
               {"state", Align::left},
               {"evaluations"},
               {"last accuracy"},
               {"training time"}});
  for (const RunGroup& group : setting.groups) {
    for (const RunRecord& run : group.runs) {
      table.add({run.folder.filename().string(), shown_name(group.figures),
                 fmt::format("{}", run.seed), run.state, fmt::format("{}", run.evaluations.size()),
                 last_accuracy(run), seconds_figure(trained_seconds(run)) + " s"});
    }
  }
  return {"Runs", table};
}

std::vector<Plot> plots_of(const Setting& setting, std::size_t index) {
  std::vector<Plot> plots;
  const auto add = [&](std::optional<Plot> plot) {
    if (plot) {
      plots.push_back(std::move(*plot));
    }
  };
  add(accuracy_plot(setting, Progress::training_time));
  add(accuracy_plot(setting, Progress::samples));
  for (Plot& plot : bar_plots(setting)) {
    plots.push_back(std::move(plot));
  }
  add(timeline_plot(setting));
  for (Plot& plot : plots) {
    plot.name = numbered(plot.name, index);
  }
  return plots;
}

std::optional<TitledTable> speed_ups_by_ratio(const std::vector<Setting>& settings) {
  std::multimap<double, const Setting*> by_factor;
  for (const Setting& setting : settings) {
    if (const auto factor = heterogeneity_of(setting)) {
      by_factor.emplace(*factor, &setting);
    }
  }
  Table table({{"setting", Align::left}, {"slowdown"}, {"scheme", Align::left}, {"speed-up"}});
  for (const auto& [factor, setting] : by_factor) {
    for (const RunGroup& group : setting->groups) {
      if (group.figures.speed_up) {
        table.add({fmt::format("{} on {}", setting->network_name(), setting->data),
                   fmt::format("{:g}", factor), shown_name(group.figures),
                   fmt::format("{:.3g}", *group.figures.speed_up)});
      }
    }
  }
  return table.rows().empty() ? std::nullopt
                              : std::optional(TitledTable{"Speed-up against heterogeneity", table});
}

/// All tables of a report in order, each with the heading above the first of a section.
template <class Begin, class One>
void for_each_table(const Report& report, bool with_runs, Begin begin, One one) {
  for (const ReportSection& section : report.sections) {
    begin(section.title);
    std::for_each(section.tables.begin(), section.tables.end(), one);
    if (with_runs) {
      one(section.runs);
    }
  }
  if (!report.tables.empty()) {
    begin("All settings");
    std::for_each(report.tables.begin(), report.tables.end(), one);
  }
}

Json json_of_run(const RunRecord& run) {
  Json evaluations = Json::array();
  for (const EvaluationResult& one : run.evaluations) {
    evaluations.push_back(to_json(one));
  }
  return {{"folder", run.folder.string()},
          {"seed", run.seed},
          {"state", run.state},
          {"notes", run.notes},
          {"evaluations", evaluations}};
}

/// What the runs of a setting have noted, each line with the folder of its run.
std::vector<std::string> notes_of(const Setting& setting) {
  std::vector<std::string> notes;
  for (const RunGroup& group : setting.groups) {
    for (const RunRecord& run : group.runs) {
      const auto& folder = run.kept ? run.comparison : run.folder;
      for (const std::string& note : run.notes) {
        notes.push_back(fmt::format("{}: {}", folder.string(), note));
      }
    }
  }
  return notes;
}

}  // namespace

Report report_on(const std::vector<Setting>& settings, const std::vector<Published>& published) {
  Report report;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const Setting& setting = settings[i];
    ReportSection section{.title = setting.title(),
                          .tables = tables_of(figures_in(setting), setting.target),
                          .runs = runs_table(setting)};
    for (const Published& one : published) {
      if (auto table = beside_published(setting, one)) {
        section.tables.push_back(std::move(*table));
      }
    }
    section.plots = plots_of(setting, i);
    report.sections.push_back(std::move(section));
    std::ranges::move(notes_of(setting), std::back_inserter(report.notes));
  }
  if (auto table = speed_ups_by_ratio(settings)) {
    report.tables.push_back(std::move(*table));
  }
  report.plots = heterogeneity_plots(settings);
  return report;
}

std::string text_of(const Report& report) {
  std::string text;
  for_each_table(
      report, false,
      [&](const std::string& title) {
        text += fmt::format("{}{}\n", text.empty() ? "" : "\n", title);
      },
      [&](const TitledTable& one) {
        text += fmt::format("\n{}\n{}\n", one.title, fmt::join(one.table.lines(), "\n"));
      });
  for (const std::string& note : report.notes) {
    text += fmt::format("{}note: {}\n", &note == &report.notes.front() ? "\n" : "", note);
  }
  return text;
}

std::string markdown_of(const Report& report) {
  std::string text = "# Report\n";
  for_each_table(
      report, true, [&](const std::string& title) { text += fmt::format("\n## {}\n", title); },
      [&](const TitledTable& one) {
        text += fmt::format("\n### {}\n\n{}\n", one.title, fmt::join(one.table.markdown(), "\n"));
      });
  if (!report.notes.empty()) {
    text += fmt::format("\n## Notes\n\n- {}\n", fmt::join(report.notes, "\n- "));
  }
  return text;
}

std::string latex_of(const Report& report) {
  std::string text = "% \\usepackage{booktabs}\n";
  std::string heading;
  for_each_table(
      report, false, [&](const std::string& title) { heading = title; },
      [&](const TitledTable& one) {
        text += "\n" + latex_of(TitledTable{fmt::format("{}: {}", heading, one.title), one.table});
      });
  for (const std::string& note : report.notes) {
    text += fmt::format("% {}\n", note);
  }
  return text;
}

Json json_of(const std::vector<Setting>& settings) {
  Json list = Json::array();
  for (const Setting& setting : settings) {
    Json schemes = Json::array();
    for (const RunGroup& group : setting.groups) {
      Json scheme = to_json(group.figures);
      scheme["runs_read"] = Json::array();
      for (const RunRecord& run : group.runs) {
        scheme["runs_read"].push_back(json_of_run(run));
      }
      schemes.push_back(std::move(scheme));
    }
    list.push_back({{"title", setting.title()},
                    {"network", setting.network.empty() ? "" : setting.network_name()},
                    {"data", setting.data},
                    {"split", setting.split},
                    {"cluster", setting.cluster.empty() ? Json(nullptr) : Json(setting.cluster)},
                    {"virtual_time", setting.virtual_time},
                    {"target_accuracy", or_null(setting.target)},
                    {"schemes", std::move(schemes)}});
  }
  return {{"settings", std::move(list)}};
}

}  // namespace syncopate::cli
