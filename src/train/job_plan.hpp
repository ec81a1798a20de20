#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster_file.hpp"
#include "cluster/membership.hpp"
#include "data/dataset.hpp"
#include "train/batch_feed.hpp"
#include "train/config.hpp"

namespace syncopate {

/// What follows from a resolved configuration and its cluster file, the same on every node.
class JobPlan {
 public:
  /// `config` is resolved: it says how many workers there are.
  /// Errors: ConfigError, when the cluster file cannot be read or has another number of devices.
  explicit JobPlan(TrainConfig config);

  const TrainConfig& config() const { return config_; }

  /// Samples per step, by rank.
  std::vector<std::uint32_t> batch_sizes() const;
  /// The samples of a worker. Parts are in proportion to batch sizes, so that all end an epoch
  /// together.
  BatchFeed feed(const ImageSet& train, Rank rank) const;
  /// Empty for a real device.
  std::optional<DevicePacer> pacer(Rank rank) const;
  /// "gpu-old (emulated)", or `real` for a device that is none.
  std::string device_name(Rank rank, const std::string& real) const;
  /// What the profile of a device allows one mini-batch; zero for a real device.
  Duration step_budget(Rank rank) const;

  /// Whom the job consists of, and whether it outlives its workers.
  Membership::Options membership() const;

  /// What every member must agree upon, in words.
  std::string agreement(std::size_t parameters) const;

 private:
  TrainConfig config_;
  std::optional<ClusterFile> cluster_;
};

}  // namespace syncopate
