#pragma once

#include <cstddef>
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
  GridPoint point = {};
  std::uint64_t seed = 1;
  bool virtual_time = false;

  /// "esync+pacing=paper-b16-lr0.02-seed1-virtual": the name of its folder. The name identifies the
  /// run.
  std::string name() const;
  friend bool operator==(const Run&, const Run&) = default;
};

/// The points of the grid with which contestants continue, by their labels.
using ChosenPoints = std::map<std::string, GridPoint>;

/// The runs of a comparison. Pure.
struct ComparisonPlan {
  TrainConfig common;  ///< not resolved
  std::vector<Contestant> contestants;
  std::uint32_t seeds = 1;  ///< from `common.seed` on
  bool grid_in_virtual_time = false;
  bool virtual_time = false;  ///< of the counted runs
  std::optional<double> target = {};
  bool until_target = false;  ///< a run ends at the target accuracy

  const Contestant& contestant(const std::string& label) const;
  /// The seed of the runs of the grid. No counted run uses it: it is the seed before
  /// the first, or 9999 if the first is 0, so a later increase of `seeds` does not reach it.
  std::uint64_t grid_seed() const;
  /// A run for each learning rate and batch size of the contestants that have several.
  std::vector<Run> grid() const;
  /// The counted runs, in the order of seeds, then of contestants.
  std::vector<Run> finals(const ChosenPoints& points) const;
  /// The number of runs in all.
  std::size_t size() const;

  /// The configuration for `train`, not resolved and without a run folder.
  TrainConfig config_of(const Run& run) const;
};

/// The settings that all runs in a folder share, because their names do not contain them.
/// `cluster_text`: the content of the cluster file.
nlohmann::ordered_json agreement_of(const ComparisonPlan& plan, const std::string& cluster_text);
/// Describes the first difference of two agreements; empty if they are equal.
std::string difference(const nlohmann::ordered_json& here, const nlohmann::ordered_json& there);

/// The cluster of the upper bound: one device with the total speed of a cluster, and the content of
/// its file. Common options that one device cannot have are dropped, so that its run is accepted.
Contestant limit_of(const CommonOptions& common, const std::filesystem::path& cluster_file);
std::string one_device_file(const ClusterFile& cluster);

/// A device of a cluster is fast if it trains at half or more of the fastest one's samples per
/// second.
inline constexpr double least_share_of_fastest = 0.5;

/// The number of devices of a cluster that are fast.
std::uint32_t fast_devices_of(const ClusterFile& cluster);
/// The ranks of that many of the fastest devices, at least one, from the fastest on; of equal ones
/// the first.
std::vector<std::size_t> by_speed(const ClusterFile& cluster, std::size_t count);
/// The cluster with only these devices, in its order.
ClusterFile fastest_of(const ClusterFile& cluster, std::uint32_t count);
/// A cluster file that `read_cluster_file` reads back.
std::string cluster_file_of(const ClusterFile& cluster);

/// A scheme that the user did not name, with the common options that it has.
Contestant baseline_of(const SchemeSpec& scheme, const CommonOptions& common);
/// A contestant on the fastest devices of `cluster`, which `cluster_file` will hold. Its options
/// list shares and devices in the order of all.
Contestant on_fastest(Contestant one, std::uint32_t count, const ClusterFile& cluster,
                      const std::filesystem::path& cluster_file);

}  // namespace syncopate::cli
