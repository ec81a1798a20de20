#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/compare/figures.hpp"
#include "cli/report/looks.hpp"
#include "cli/report/run_record.hpp"

namespace syncopate::cli {

/// Runs that differ only in their seeds.
struct RunGroup {
  std::string label;  ///< "esync", "esync:pacing=paper", or of the contestant
  std::vector<RunRecord> runs = {};
  ContestantFigures figures = {};  ///< its label is the one to show
  Look look = {};                  ///< equal for equal labels, in all settings
};

/// The settings that runs share if they can be compared with each other.
struct Setting {
  std::string network;  ///< a name, or the path of a file
  std::string data;
  std::string split;    ///< "iid"
  std::string cluster;  ///< empty: real devices
  bool virtual_time = false;
  std::optional<double> target = {};
  std::vector<RunGroup> groups = {};

  /// "lenet5 on fashion-mnist, cluster mixed, i.i.d., virtual time".
  std::string title() const;
  /// The network as summary.json names it: a file without its folder. "unknown network" if no run
  /// records it.
  std::string network_name() const;
};

struct StudyOptions {
  std::optional<double> target = {};     ///< empty: chosen, see `study_of`
  std::vector<std::string> labels = {};  ///< to show, by the order of groups; empty: their own
};

/// Groups runs, and computes the figures of each group.
///
/// Runs belong to one setting if network, data, split, cluster and clock are equal, and within it
/// to one group if all options except seed and folders are equal. The label of a group is its
/// contestant's in a comparison, else the scheme; if several groups would have the same label, it
/// also names the options in which they differ, as far as they are known.
///
/// Without a target from the user, a setting has the highest target of its runs, else the greatest
/// multiple of 0.05 that each group with evaluations reached in more than half of its runs.
/// Settings that differ only in the clusters `ratio-R` have one target.
///
/// Errors: ConfigError if the number of labels differs from that of groups.
std::vector<Setting> study_of(std::vector<RunRecord> runs, const StudyOptions& options);

/// Two settings train the same network on the same data.
bool same_task(const Setting& one, const Setting& other);

/// The slow devices' factor in the name of a cluster, `ratio-16`; empty for any other cluster.
std::optional<double> heterogeneity_of(const Setting& setting);

}  // namespace syncopate::cli
