#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/compare/contestant.hpp"
#include "device/cluster_file.hpp"

namespace syncopate::cli {

/// A training job of a comparison.
struct Run {
  std::string contestant;  ///< its label
  std::optional<double> learning_rate;
  std::uint64_t seed = 1;
  bool virtual_time = false;

  /// "esync+pacing=paper-lr0.02-seed1-virtual": the name of its folder. Runs of one name are one
  /// run.
  std::string name() const;
  friend bool operator==(const Run&, const Run&) = default;
};

/// Learning rates by the labels of contestants; empty: the scheme's usual one.
using ChosenRates = std::map<std::string, std::optional<double>>;

/// What a comparison consists of. Pure.
struct ComparisonPlan {
  TrainConfig common;  ///< not resolved
  std::vector<Contestant> contestants;
  std::uint32_t seeds = 1;  ///< from `common.seed` on
  bool grid_in_virtual_time = false;
  bool virtual_time = false;  ///< the runs that count, too
  std::optional<double> target = {};
  bool until_target = false;  ///< a run ends where the target is reached

  const Contestant& contestant(const std::string& label) const;
  /// The seed with which learning rates are tried, none of those that count: the one before the
  /// first, and 9999 where that is 0. More seeds later do not reach it.
  std::uint64_t grid_seed() const;
  /// A run for each learning rate of the contestants that have several.
  std::vector<Run> grid() const;
  /// The runs that count: seed by seed, contestant by contestant.
  std::vector<Run> finals(const ChosenRates& rates) const;
  /// How many runs there are in all.
  std::size_t size() const;

  /// The configuration for `train`, not resolved and without a run folder.
  TrainConfig config_of(const Run& run) const;
};

/// What runs in a folder must agree in, because only their names distinguish them.
/// `cluster_text`: what the cluster file holds.
nlohmann::ordered_json agreement_of(const ComparisonPlan& plan, const std::string& cluster_text);
/// The first difference of two agreements in words; empty: there is none.
std::string difference(const nlohmann::ordered_json& here, const nlohmann::ordered_json& there);

/// One device with the summed speed of a cluster, and the content of its file.
Contestant limit_of(const CommonOptions& common, const std::filesystem::path& cluster_file);
std::string one_device_file(const ClusterFile& cluster);

}  // namespace syncopate::cli
