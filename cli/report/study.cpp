#include "cli/report/study.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "base/errors.hpp"
#include "cli/report/log_lines.hpp"
#include "config/text.hpp"
#include "report/scoreboard.hpp"
#include "spec/network_file.hpp"

namespace syncopate::cli {
namespace {

/// Options that do not distinguish the groups of a setting: those in which the runs of a group may
/// differ, and those that belong to the setting.
constexpr std::array not_of_a_group{"seed",    "run_dir", "data_dir",       "cluster",
                                    "network", "data",    "split",          "virtual_time",
                                    "scheme",  "workers", "split_by_class", "target_accuracy"};

using Options = std::map<std::string, std::string>;

std::string option_in(const RunRecord& run, const std::string& key) {
  const auto found = run.options.find(key);
  return found == run.options.end() ? "" : found->second;
}

std::string base_label(const RunRecord& run) {
  if (!run.label.empty()) {
    return run.label;
  }
  const std::string scheme = option_in(run, "scheme");
  return scheme.empty() ? "unknown scheme" : scheme;
}

/// The options in which groups of one setting may differ. The number of workers is one of them if
/// no cluster file determines it.
Options distinguishing(const RunRecord& run) {
  if (!run.label.empty()) {
    return {{"comparison", run.comparison.string()}};  // contestants have labels of their own
  }
  Options options = run.options;
  for (const char* key : not_of_a_group) {
    options.erase(key);
  }
  if (run.cluster.empty()) {
    options["workers"] = option_in(run, "workers");
  }
  return options;
}

Setting setting_of(const RunRecord& run) {
  const std::string split = option_in(run, "split");
  return {.network = option_in(run, "network"),
          .data = option_in(run, "data"),
          .split = split.empty() ? "iid" : split,
          .cluster = run.cluster,
          .virtual_time = option_in(run, "virtual_time") == "true"};
}

bool same_setting(const Setting& one, const Setting& other) {
  return same_task(one, other) && one.cluster == other.cluster &&
         one.virtual_time == other.virtual_time;
}

bool belongs(const RunRecord& run, const RunGroup& group) {
  return group.label == base_label(run) &&
         distinguishing(group.runs.front()) == distinguishing(run);
}

void add_run(std::vector<Setting>& settings, RunRecord run) {
  const Setting own = setting_of(run);
  auto setting = std::find_if(settings.begin(), settings.end(),
                              [&](const Setting& one) { return same_setting(one, own); });
  if (setting == settings.end()) {
    setting = settings.insert(settings.end(), own);
  }
  auto group = std::find_if(setting->groups.begin(), setting->groups.end(),
                            [&](const RunGroup& one) { return belongs(run, one); });
  if (group == setting->groups.end()) {
    group = setting->groups.insert(setting->groups.end(), {.label = base_label(run)});
  }
  group->runs.push_back(std::move(run));
}

/// The value of an option in a label. Empty if it is unknown: the logs of another program do not
/// have all options, while our configuration files omit options with their default values.
std::optional<std::string> known_value(const RunGroup& group, const std::string& key) {
  const RunRecord& run = group.runs.front();
  if (const std::string value = distinguishing(run)[key]; !value.empty()) {
    return value;
  }
  return run.partly.empty() ? std::optional<std::string>("default") : std::nullopt;
}

/// The options whose known values differ between groups of the same label.
std::set<std::string> differing(const std::vector<const RunGroup*>& groups) {
  std::set<std::string> keys;
  std::set<std::string> names;
  for (const RunGroup* group : groups) {
    for (const auto& option : distinguishing(group->runs.front())) {
      names.insert(option.first);
    }
  }
  for (const std::string& name : names) {
    std::set<std::string> values;
    for (const RunGroup* group : groups) {
      if (const auto value = known_value(*group, name)) {
        values.insert(*value);
      }
    }
    if (values.size() > 1) {
      keys.insert(name);
    }
  }
  return keys;
}

std::string with_options(const RunGroup& group, const std::set<std::string>& keys) {
  std::string label = group.label;
  for (const std::string& key : keys) {
    if (const auto value = known_value(group, key)) {
      std::string name = key;
      std::replace(name.begin(), name.end(), '_', '-');
      label += fmt::format(":{}={}", name, *value);
    }
  }
  return label;
}

/// Groups may differ only in options that some of them lack. Their labels get a word that says so;
/// labels that are still equal get a number.
void make_unique(std::vector<std::string>& labels, const std::vector<RunGroup>& groups) {
  const std::multiset<std::string> given(labels.begin(), labels.end());
  std::map<std::string, std::size_t> uses;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::string& partly = groups[i].runs.front().partly;
    if (given.count(labels[i]) > 1 && !partly.empty()) {
      labels[i] += ":" + partly;
    }
    if (const std::size_t use = ++uses[labels[i]]; use > 1) {
      labels[i] += fmt::format(":{}", use);
    }
  }
}

void tell_apart(Setting& setting) {
  std::map<std::string, std::vector<const RunGroup*>> by_label;
  for (const RunGroup& group : setting.groups) {
    by_label[group.label].push_back(&group);
  }
  std::vector<std::string> labels;
  for (const RunGroup& group : setting.groups) {
    const auto& namesakes = by_label.at(group.label);
    labels.push_back(namesakes.size() > 1 ? with_options(group, differing(namesakes))
                                          : group.label);
  }
  make_unique(labels, setting.groups);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    setting.groups[i].label = labels[i];
  }
}

std::optional<double> time_to(const RunRecord& run, double target) {
  Scoreboard scoreboard(target);
  for (const EvaluationResult& one : run.evaluations) {
    scoreboard.add(one);
  }
  return scoreboard.time_to_target_seconds();
}

/// A run that crashed or still runs says nothing about its scheme; one that diverged does.
bool has_ended(const RunRecord& run) {
  return run.kept || run.summary.is_object() || run.state == "diverged";
}

/// The runs from which a group's figures are computed: those that have ended, or all if none has.
std::vector<const RunRecord*> counted_runs(const RunGroup& group) {
  const bool any = std::any_of(group.runs.begin(), group.runs.end(), has_ended);
  std::vector<const RunRecord*> counted;
  for (const RunRecord& run : group.runs) {
    if (!any || has_ended(run)) {
      counted.push_back(&run);
    }
  }
  return counted;
}

/// The median counts a run that never reached the target as infinitely late, so more than half of
/// the runs must have reached it. A group without evaluations does not count.
bool reached_by_most(const RunGroup& group, double target) {
  std::size_t reached = 0;
  std::size_t tested = 0;
  for (const RunRecord* run : counted_runs(group)) {
    tested += run->evaluations.empty() ? 0 : 1;
    reached += time_to(*run, target) ? 1 : 0;
  }
  return tested == 0 || 2 * reached > tested;
}

std::optional<double> usual_target(const std::vector<const RunGroup*>& groups) {
  std::optional<double> own;
  bool tested = false;
  for (const RunGroup* group : groups) {
    for (const RunRecord& run : group->runs) {
      own = run.target ? std::max(own.value_or(0), *run.target) : own;
      tested = tested || !run.evaluations.empty();
    }
  }
  for (int twentieths = 19; twentieths > 0 && tested && !own; --twentieths) {
    const double target = twentieths / 20.0;
    if (std::all_of(groups.begin(), groups.end(),
                    [&](const RunGroup* group) { return reached_by_most(*group, target); })) {
      return target;
    }
  }
  return own;
}

/// The clusters `ratio-R` are one experiment.
bool shares_target(const Setting& one, const Setting& other) {
  const bool ratios = heterogeneity_of(one) && heterogeneity_of(other);
  return same_task(one, other) && (ratios || one.cluster == other.cluster);
}

void choose_targets(std::vector<Setting>& settings, std::optional<double> asked) {
  for (Setting& setting : settings) {
    std::vector<const RunGroup*> groups;
    for (const Setting& other : settings) {
      if (shares_target(setting, other)) {
        for (const RunGroup& group : other.groups) {
          groups.push_back(&group);
        }
      }
    }
    setting.target = asked ? asked : usual_target(groups);
  }
}

RunFigures figures_in(const RunRecord& run, std::optional<double> target) {
  if (run.kept) {
    RunFigures figures = *run.kept;
    if (target != run.target) {
      figures.time_to_target.reset();  // comparison.json has the time to its own target
    }
    return figures;
  }
  if (run.summary.is_object()) {
    return figures_of(run.summary, target);
  }
  return {.time_to_target = target ? time_to(run, *target) : std::nullopt};
}

bool lacks(const RunGroup& group, const std::string& field) {
  return std::any_of(group.runs.begin(), group.runs.end(), [&](const RunRecord& run) {
    return std::find(run.lacks.begin(), run.lacks.end(), field) != run.lacks.end();
  });
}

/// A figure that a run of another version lacks is unknown, not 0.
void forget_lacking(RunGroup& group) {
  ContestantFigures& figures = group.figures;
  if (lacks(group, "throughput")) {
    figures.throughput.reset();
  }
  if (lacks(group, "cluster_efficiency")) {
    figures.cluster_efficiency.reset();
  }
  if (lacks(group, "staleness.median")) {
    figures.median_staleness.reset();
  }
  for (const char* ratio :
       {"workers.computing_time_ratio", "workers.communication_ratio", "workers.wait_ratio"}) {
    if (lacks(group, ratio)) {
      figures.devices.clear();
    }
  }
}

/// comparison.json has only times to the comparison's own target; others need the runs themselves.
void note_other_target(Setting& setting) {
  for (RunGroup& group : setting.groups) {
    for (RunRecord& run : group.runs) {
      if (run.kept && run.target && setting.target != run.target) {
        run.notes.push_back(fmt::format(
            "comparison.json has only times to accuracy {:g}; times to {:g} need the runs",
            *run.target, setting.target.value_or(0)));
        return;
      }
    }
  }
}

void compute_figures(Setting& setting) {
  std::vector<ContestantFigures> all;
  for (RunGroup& group : setting.groups) {
    std::vector<RunFigures> runs;
    std::size_t devices = 0;
    for (const RunRecord* run : counted_runs(group)) {
      runs.push_back(figures_in(*run, setting.target));
      // A run with another number of devices does not count for the medians of devices.
      devices = std::max(devices, runs.back().devices.size());
    }
    for (RunFigures& run : runs) {
      if (run.devices.size() != devices) {
        run.devices.clear();
      }
    }
    all.push_back(figures_over(group.label, runs));
  }
  relate(all);
  note_other_target(setting);
  for (std::size_t i = 0; i < all.size(); ++i) {
    setting.groups[i].figures = all[i];
    forget_lacking(setting.groups[i]);
  }
}

/// The labels of all settings, each once, in the order of groups.
std::vector<std::string> all_labels(const std::vector<Setting>& settings) {
  std::vector<std::string> labels;
  for (const Setting& setting : settings) {
    for (const RunGroup& group : setting.groups) {
      if (std::find(labels.begin(), labels.end(), group.label) == labels.end()) {
        labels.push_back(group.label);
      }
    }
  }
  return labels;
}

/// Calls `use` with each group and the place of its label among `labels`.
template <class Use>
void for_each_label(std::vector<Setting>& settings, const std::vector<std::string>& labels,
                    Use use) {
  for (Setting& setting : settings) {
    for (RunGroup& group : setting.groups) {
      const auto place = std::find(labels.begin(), labels.end(), group.label);
      use(group, static_cast<std::size_t>(place - labels.begin()));
    }
  }
}

void choose_looks(std::vector<Setting>& settings) {
  const std::vector<std::string> labels = all_labels(settings);
  const std::vector<Look> looks = looks_of(labels);
  for_each_label(settings, labels,
                 [&](RunGroup& group, std::size_t place) { group.look = looks[place]; });
}

void rename(std::vector<Setting>& settings, const std::vector<std::string>& names) {
  const std::vector<std::string> labels = all_labels(settings);
  if (labels.size() != names.size()) {
    throw ConfigError(fmt::format("--labels: expected {} names, one for each of {}; found {}",
                                  labels.size(), fmt::join(labels, ", "), names.size()));
  }
  for_each_label(settings, labels,
                 [&](RunGroup& group, std::size_t place) { group.figures.label = names[place]; });
}

}  // namespace

std::string Setting::title() const {
  const std::string where = cluster.empty() ? "real devices" : "cluster " + cluster;
  return fmt::format(
      "{} on {}, {}, {}, {} time", network_name(), data.empty() ? "unknown data" : data, where,
      split == "iid" ? "i.i.d." : "split " + split, virtual_time ? "virtual" : "real");
}

std::string Setting::network_name() const {
  if (network.empty()) {
    return "unknown network";
  }
  return is_network_file(network) ? std::filesystem::path(network).filename().string() : network;
}

bool same_task(const Setting& one, const Setting& other) {
  return one.network == other.network && one.data == other.data && one.split == other.split;
}

std::optional<double> heterogeneity_of(const Setting& setting) {
  constexpr std::string_view prefix = "ratio-";
  const std::string_view name = setting.cluster;
  return name.starts_with(prefix) ? number_in<double>(name.substr(prefix.size())) : std::nullopt;
}

std::vector<Setting> study_of(std::vector<RunRecord> runs, const StudyOptions& options) {
  std::vector<Setting> settings;
  for (RunRecord& run : runs) {
    add_run(settings, std::move(run));
  }
  std::for_each(settings.begin(), settings.end(), tell_apart);
  choose_targets(settings, options.target);
  std::for_each(settings.begin(), settings.end(), compute_figures);
  choose_looks(settings);
  if (!options.labels.empty()) {
    rename(settings, options.labels);
  }
  return settings;
}

}  // namespace syncopate::cli
