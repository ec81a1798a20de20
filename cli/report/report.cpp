#include "cli/report/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

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

/// The values of an option in the runs: "mini-batch 64", or "mini-batch 64 (ssgd, esync), 16
/// (asgd)". Empty if no run has the option.
std::string option_text(const Setting& setting, const char* key, const char* name) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_value;
  for (const RunGroup& group : setting.groups) {
    const auto& options = group.runs.front().options;
    const auto value = options.find(key);
    if (value == options.end() || value->second.empty()) {
      continue;
    }
    auto known =
        std::ranges::find(by_value, value->second, [](const auto& one) { return one.first; });
    if (known == by_value.end()) {
      known = by_value.insert(by_value.end(), {value->second, {}});
    }
    known->second.push_back(shown_name(group.figures));
  }
  std::vector<std::string> parts;
  for (const auto& [value, groups] : by_value) {
    const bool of_all = groups.size() == setting.groups.size();
    parts.push_back(of_all ? value : fmt::format("{} ({})", value, fmt::join(groups, ", ")));
  }
  return parts.empty() ? "" : fmt::format("{} {}", name, fmt::join(parts, ", "));
}

/// "Seeds 21, 22, 23; mini-batch 64; optimizer momentum", and the programs and machines of the
/// runs.
std::vector<std::string> method_of(const Setting& setting) {
  std::set<std::uint64_t> seeds;
  std::set<std::string> origins;
  for (const RunGroup& group : setting.groups) {
    for (const RunRecord& run : group.runs) {
      seeds.insert(run.seed);
      if (const std::string version = text_at(run.summary, "version"); !version.empty()) {
        origins.insert(fmt::format("syncopate {} on {}", version, text_at(run.summary, "machine")));
      }
    }
  }
  std::vector<std::string> facts{
      fmt::format("{} {}", seeds.size() == 1 ? "Seed" : "Seeds", fmt::join(seeds, ", "))};
  constexpr std::pair<const char*, const char*> options[] = {{"batch_size", "mini-batch"},
                                                             {"optimizer", "optimizer"},
                                                             {"weight_decay", "weight decay"},
                                                             {"schedule", "schedule"},
                                                             {"warm_up", "warm-up"}};
  for (const auto& [key, name] : options) {
    if (std::string text = option_text(setting, key, name); !text.empty()) {
      facts.push_back(std::move(text));
    }
  }
  std::vector<std::string> lines{fmt::format("{}.", fmt::join(facts, "; "))};
  if (!origins.empty()) {
    lines.push_back(fmt::format("Runs of {}.", fmt::join(origins, "; ")));
  }
  return lines;
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
  add(devices_plot(setting));
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
    begin(section);
    std::for_each(section.tables.begin(), section.tables.end(), one);
    if (with_runs) {
      one(section.runs);
    }
  }
  if (!report.tables.empty()) {
    begin(ReportSection{.title = "All settings", .runs = {"", Table({})}, .plots = report.plots});
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

/// The notes of a setting's runs, each with the folder of its run.
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

Report report_on(const std::vector<Setting>& settings, const std::vector<Published>& published,
                 const std::string& command) {
  Report report{.command = command};
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const Setting& setting = settings[i];
    ReportSection section{.title = setting.title(),
                          .method = method_of(setting),
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
      [&](const ReportSection& section) {
        text += fmt::format("{}{}\n", text.empty() ? "" : "\n", section.title);
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
  if (!report.command.empty()) {
    text += fmt::format("\n    {}\n", report.command);
  }
  for_each_table(
      report, true,
      [&](const ReportSection& section) {
        text += fmt::format("\n## {}\n", section.title);
        if (!section.method.empty()) {
          text += fmt::format("\n{}\n", fmt::join(section.method, " "));
        }
      },
      [&](const TitledTable& one) {
        text += fmt::format("\n### {}\n\n{}\n", one.title, fmt::join(one.table.markdown(), "\n"));
      });
  if (!report.notes.empty()) {
    text += fmt::format("\n## Notes\n\n- {}\n", fmt::join(report.notes, "\n- "));
  }
  return text;
}

std::string latex_of(const Report& report) {
  std::string text = "% \\usepackage{booktabs,graphicx}\n";
  text += report.command.empty() ? "" : fmt::format("% {}\n", report.command);
  std::string heading;
  for_each_table(
      report, false,
      [&](const ReportSection& section) {
        heading = section.title;
        if (!section.method.empty()) {
          text += fmt::format("\n% {}\n", fmt::join(section.method, "\n% "));
        }
        for (const Plot& plot : section.plots) {
          text += "\n" + latex_of(plot, heading);
        }
      },
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
