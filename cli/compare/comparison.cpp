#include "cli/compare/comparison.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <utility>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "base/machine.hpp"
#include "base/printable.hpp"
#include "cli/compare/comparison_report.hpp"
#include "cli/compare/device_benefit.hpp"
#include "cli/compare/run_queue.hpp"
#include "job/launch/exit_status.hpp"
#include "spec/job_plan.hpp"
#include "spec/network_file.hpp"
#include "telemetry/json_lines.hpp"

namespace syncopate::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Refuses an added contestant that `train` would refuse, before anything is written. `advice`: how
/// to compare without it. Errors: ConfigError.
Contestant accepted(Contestant one, std::size_t devices, const char* advice) {
  try {
    use_usual_global_batch(one, static_cast<std::uint32_t>(devices));
  } catch (const ConfigError& error) {
    throw ConfigError(
        fmt::format("{}: {}; {} the comparison goes without it", one.label, error.what(), advice));
  }
  return one;
}

ComparisonPlan plan_of(const CompareCommand& command, const RunFolders& folders) {
  ComparisonPlan plan{.common = command.common.config,
                      .contestants = command.contestants,
                      .seeds = command.seeds,
                      .grid_in_virtual_time = command.grid_in_virtual_time,
                      .virtual_time = command.common.config.virtual_time,
                      .target = command.common.config.target_accuracy,
                      .until_target = command.until_target};
  if (command.with_limit) {
    plan.contestants.push_back(
        accepted(limit_of(command.common, std::filesystem::absolute(folders.limit())), 1,
                 "with --no-limit"));
  }
  if (!command.with_fast && !command.prefixes) {
    return plan;
  }
  const ClusterFile cluster = read_cluster_file(plan.common.cluster);
  const auto add = [&](Contestant one, std::uint32_t count, const char* advice) {
    const auto file = std::filesystem::absolute(folders.fastest(count));
    plan.contestants.push_back(
        accepted(on_fastest(std::move(one), count, cluster, file), count, advice));
  };
  const std::uint32_t fast = fast_devices_of(cluster);
  for (const SchemeSpec* const scheme : {&baseline_scheme(), &paced_scheme()}) {
    if (command.with_fast && fast < cluster.devices.size()) {
      Contestant baseline = baseline_of(*scheme, command.common);
      baseline.label += "-fast";
      add(std::move(baseline), fast, "with --no-baselines");
    }
  }
  for (const Contestant& one : command.contestants) {
    for (std::uint32_t count = 1; command.prefixes && count < cluster.devices.size(); ++count) {
      Contestant part = one;
      part.label = fmt::format("{}-of-{}", one.label, count);
      part.prefix_of = one.label;
      if (std::exchange(part.usual_batch, false)) {
        part.config.batch_size.reset();
      }
      add(std::move(part), count, "without --prefixes");
    }
  }
  return plan;
}

std::vector<Run> those(const std::vector<Run>& runs, bool virtual_time) {
  std::vector<Run> some;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(some),
               [&](const Run& run) { return run.virtual_time == virtual_time; });
  return some;
}

/// Marks a chosen value at the edge of the grid, because a better one may lie beyond it. Of two
/// values, each is at an edge.
template <class Number>
std::string edge_text(const std::vector<Number>& tried, const std::optional<Number>& chosen) {
  if (tried.size() < 2) {
    return "";
  }
  const auto [least, most] = std::minmax_element(tried.begin(), tried.end());
  return chosen == *least  ? " (the least that was tried)"
         : chosen == *most ? " (the greatest that was tried)"
                           : "";
}

/// "esync continues with batch size 16 and learning rate 0.05 (the greatest that was tried)"
std::string choice_text(const Contestant& one, const GridPoint& chosen) {
  std::vector<std::string> parts;
  if (chosen.batch_size) {
    parts.push_back(fmt::format("batch size {}{}", *chosen.batch_size,
                                edge_text(one.batch_sizes, chosen.batch_size)));
  }
  if (chosen.learning_rate) {
    parts.push_back(fmt::format("learning rate {}{}", *chosen.learning_rate,
                                edge_text(one.learning_rates, chosen.learning_rate)));
  }
  return fmt::format("{} continues with {}", one.label, fmt::join(parts, " and "));
}

class Comparison {
 public:
  explicit Comparison(const CompareCommand& command);
  void run();

 private:
  Workload workload(const Run& run) const;
  void foresee();
  std::vector<RunFigures> carry_out(const std::vector<Run>& runs);
  ChosenPoints choose();
  void conclude(const std::vector<Run>& finals, const std::vector<RunFigures>& figures);
  void keep(const std::vector<TitledTable>& tables, const Json& json);
  Provenance provenance() const;
  const char* tried_names() const;

  const CompareCommand& command_;
  RunFolders folders_;
  Descriptor lock_;
  ComparisonPlan plan_;
  std::optional<ClusterFile> cluster_;
  std::optional<ClusterFile> limit_;
  std::string cluster_text_;
  std::uint64_t train_samples_;
  Forecast forecast_;
  std::optional<ComparisonProgress> progress_;
  std::optional<RunQueue> queue_;
  Json tried_ = Json::object();
};

Comparison::Comparison(const CompareCommand& command)
    : command_(command),
      folders_(command.folder),
      plan_(plan_of(command, folders_)),
      train_samples_(load_data(plan_.common).train.samples()),
      forecast_(command.jobs) {
  if (!plan_.common.cluster.empty()) {
    cluster_ = read_cluster_file(plan_.common.cluster);
    cluster_text_ = read_file(plan_.common.cluster);
  }
  folders_.claim(agreement_of(plan_, cluster_text_));
  lock_ = folders_.lock();
  if (command.with_limit) {
    write_file(folders_.limit(), one_device_file(*cluster_));
    limit_ = read_cluster_file(folders_.limit());
  }
  for (const Contestant& one : plan_.contestants) {
    if (one.fastest > 0) {
      write_file(folders_.fastest(one.fastest),
                 cluster_file_of(fastest_of(*cluster_, one.fastest)));
    }
  }
  progress_.emplace(command.output, plan_.size(), plan_.target);
  queue_.emplace(RunQueue::Options{.plan = plan_,
                                   .folders = folders_,
                                   .workload = [this](const Run& run) { return workload(run); },
                                   .forecast = forecast_,
                                   .progress = *progress_,
                                   .how_to_go_on = command.words});
}

Workload Comparison::workload(const Run& run) const {
  const Contestant& one = plan_.contestant(run.contestant);
  const auto& whole = one.is_limit ? limit_ : cluster_;
  const auto cluster = one.fastest > 0 ? std::optional(fastest_of(*cluster_, one.fastest)) : whole;
  return workload_of(plan_.config_of(run), cluster ? &*cluster : nullptr, train_samples_);
}

/// Forecasts the duration of all runs, including finished ones. Takes the first point of each grid
/// for the counted runs, because the best point is not known yet.
void Comparison::foresee() {
  ChosenPoints any;
  for (const Contestant& one : plan_.contestants) {
    any[one.label] = one.grid().front();
  }
  std::vector<Run> all = plan_.grid();
  const std::vector<Run> counted = plan_.finals(any);
  all.insert(all.end(), counted.begin(), counted.end());
  for (const Run& run : all) {
    forecast_.expect(workload(run), run.virtual_time);
  }
  const auto seconds = forecast_.remaining();
  progress_->note(fmt::format("{} runs in {}; {}", all.size(), folders_.root().string(),
                              seconds
                                  ? about(*seconds) + " at most"
                                  : "the first run in virtual time will show how long they take"));
}

/// Runs in virtual time run in parallel; a real run gets the whole machine.
std::vector<RunFigures> Comparison::carry_out(const std::vector<Run>& runs) {
  const auto virtual_figures = queue_->carry_out(those(runs, true), command_.jobs);
  const auto real_figures = queue_->carry_out(those(runs, false), 1);
  auto next_virtual = virtual_figures.begin();
  auto next_real = real_figures.begin();
  std::vector<RunFigures> figures;
  for (const Run& run : runs) {
    figures.push_back(run.virtual_time ? *next_virtual++ : *next_real++);
  }
  return figures;
}

ChosenPoints Comparison::choose() {
  const std::vector<Run> grid = plan_.grid();
  const std::vector<RunFigures> figures = carry_out(grid);
  ChosenPoints chosen;
  for (const Contestant& one : plan_.contestants) {
    std::vector<RunFigures> own;
    for (std::size_t i = 0; i < grid.size(); ++i) {
      if (grid[i].contestant == one.label) {
        own.push_back(figures[i]);
        own.back().learning_rate = grid[i].point.learning_rate;
        own.back().batch_size = grid[i].point.batch_size;
        tried_[one.label].push_back(to_json(own.back()));
      }
    }
    if (own.empty()) {
      chosen[one.label] = one.grid().front();
      continue;
    }
    const RunFigures& best = best_of(own);
    chosen[one.label] = {.learning_rate = best.learning_rate, .batch_size = best.batch_size};
    progress_->note(choice_text(one, chosen[one.label]));
  }
  return chosen;
}

void Comparison::run() {
  foresee();
  const std::vector<Run> finals = plan_.finals(choose());
  conclude(finals, carry_out(finals));
}

void Comparison::conclude(const std::vector<Run>& finals, const std::vector<RunFigures>& figures) {
  std::vector<ContestantFigures> contestants;
  TimesToTarget times;
  Json runs = Json::array();
  for (const Contestant& one : plan_.contestants) {
    std::vector<RunFigures> own;
    for (std::size_t i = 0; i < finals.size(); ++i) {
      if (finals[i].contestant == one.label) {
        own.push_back(figures[i]);
        own.back().batch_size = finals[i].point.batch_size;
        runs.push_back(
            {{"label", one.label}, {"name", finals[i].name()}, {"seed", finals[i].seed}});
        if (!one.prefix_of.empty()) {
          runs.back()["prefix_of"] = one.prefix_of;
        }
        runs.back().update(to_json(own.back()));
      }
    }
    times[one.label] = times_of(own);
    if (one.prefix_of.empty()) {
      contestants.push_back(figures_over(one.label, own));
    }
  }
  relate(contestants);
  Json list = Json::array();
  std::transform(contestants.begin(), contestants.end(), std::back_inserter(list),
                 [](const auto& one) { return to_json(one); });
  Json json{{"contestants", std::move(list)}, {"runs", std::move(runs)}, {"tried", tried_}};
  std::vector<TitledTable> tables = tables_of(contestants, plan_.target);
  if (command_.prefixes) {
    const std::vector<DeviceBenefit> benefits = benefits_of(plan_, *cluster_, times);
    tables.push_back(benefit_table(benefits));
    json["device_benefits"] = to_json(benefits);
  }
  keep(tables, json);
}

void Comparison::keep(const std::vector<TitledTable>& tables, const Json& json) {
  const Provenance made = provenance();
  Json whole{{"agreement", agreement_of(plan_, cluster_text_)},
             {"command", made.command},
             {"version", made.version},
             {"machine", made.machine},
             {"date", made.date},
             {"target_accuracy", plan_.target ? Json(*plan_.target) : Json(nullptr)},
             {"virtual_time", plan_.virtual_time}};
  whole.update(json);
  write_file(folders_.memory(), json_text(whole, 2) + "\n");
  write_file(folders_.table(), markdown_of(tables, made));
  progress_.reset();
  // Prints through the C stream: a write error of it ends the command.
  if (command_.output.json) {
    fmt::print("{}\n", printable_lines(json_text(whole)));
    return;
  }
  for (const TitledTable& one : tables) {
    const std::string lines = fmt::format("{}", fmt::join(one.table.lines(), "\n"));
    fmt::print("\n{}\n{}\n", one.title, printable_lines(lines));
  }
  fmt::print("\nsaved in {}\n", printable_lines(folders_.table().string()));
}

const char* Comparison::tried_names() const {
  return command_.common.batch_sizes.empty()      ? "Learning rates"
         : command_.common.learning_rates.empty() ? "Batch sizes"
                                                  : "Batch sizes and learning rates";
}

Provenance Comparison::provenance() const {
  const char* counted = plan_.virtual_time ? "virtual" : "real";
  const bool tried = !plan_.grid().empty();
  const char* tried_in = plan_.grid_in_virtual_time ? "virtual" : "real";
  std::string worlds = tried
                           ? fmt::format(
                                 "{} were tried in {} time with seed {}, whose runs do not count; "
                                 "the counted runs: {} time, {} seeds",
                                 tried_names(), tried_in, plan_.grid_seed(), counted, plan_.seeds)
                           : fmt::format("Run in {} time, {} seeds", counted, plan_.seeds);
  if (has_batch_norm(*plan_.common.network)) {
    worlds += fmt::format("; evaluated with {} BatchNorm statistics",
                          name_of_value(plan_.common.batch_norm));
  }
  return {.command = command_.words,
          .machine = machine_text(),
          .date = fmt::format("{:%Y-%m-%d}", fmt::localtime(std::time(nullptr))),
          .version = command_.version,
          .worlds = std::move(worlds)};
}

}  // namespace

int compare(const CompareCommand& command) {
  Comparison(command).run();
  return exit_status::success;
}

}  // namespace syncopate::cli
