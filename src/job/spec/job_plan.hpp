#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/batch_feed.hpp"
#include "data/dataset.hpp"
#include "device/cluster_file.hpp"
#include "job/spec/config.hpp"
#include "membership/membership.hpp"
#include "optim/delay_compensation.hpp"
#include "optim/schedule.hpp"
#include "optim/update_rule.hpp"
#include "pacer/pacer.hpp"
#include "scheme/push_weight.hpp"
#include "server/consistency.hpp"

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
  /// The samples of a worker. With split iid all workers end an epoch together: in lockstep parts
  /// are in proportion to batch sizes, elsewhere to the speeds of the cluster file, where there is
  /// one. Errors: ConfigError, where the split leaves a worker too few samples.
  BatchFeed feed(const ImageSet& train, Rank rank) const;
  /// A worker's part over all training samples: its weight in a mean by weights data.
  double data_share(const ImageSet& train, Rank rank) const;
  /// Empty for a real device.
  std::optional<DevicePacer> pacer(Rank rank) const;
  /// "gpu-old (emulated)", "gpu-old (simulated)", or `real` for a device that is none.
  std::string device_name(Rank rank, const std::string& real) const;
  /// What the profile of a device allows one mini-batch; zero for a real device.
  Duration step_budget(Rank rank) const;

  /// Whom the job consists of, and whether it outlives its workers.
  Membership::Options membership() const;
  /// How the workers' steps go together.
  SyncMode sync_mode() const;
  /// Samples that the job trains on while every worker does one step.
  double samples_per_step() const;
  double steps_per_epoch(std::uint64_t train_samples) const;
  /// Of all workers, in all epochs.
  std::uint64_t samples_to_train(std::uint64_t train_samples) const;
  /// Whether a step may be smaller than the worker's batch, the last one of an epoch apart.
  bool cuts_batches() const;
  /// The fewest samples that a step may take on a device, as far as the configuration tells: of
  /// balanced workers, by the speeds of the cluster file.
  std::uint32_t least_step_samples() const;
  /// Samples per second of an emulated device by itself, in steps of its whole batch; 0 for a real
  /// one.
  double profiled_throughput(Rank rank) const;
  /// How much gradients count that workers do not average themselves. Where each is an update of
  /// its own, a batch of the mean size weighs 1; gradients of one worker alone are those of
  /// sequential SGD.
  PushWeight push_weight() const;

  /// Of a job whose workers are paced. `done` rounds came before, in a run that is resumed.
  std::optional<Pacer::Options> pacing(std::uint64_t done) const;

  /// Of a job with a parameter server: whether the model is the server's, or only sums are made
  /// there.
  bool server_keeps_model() const;
  /// Whether workers who meet each other go on without one that is lost.
  bool workers_regroup() const;
  ConsistencyOptions consistency() const;
  RuleSpec server_rule() const;
  /// Of the server's learning rate.
  Schedule server_schedule() const;
  std::optional<DelayCompensation::Options> delay_compensation() const;

  /// What every member must agree upon, in words.
  std::string agreement(std::size_t parameters) const;

 private:
  std::vector<std::uint32_t> least_steps() const;
  std::vector<double> shares_of(std::uint64_t samples) const;
  std::vector<std::uint32_t> balanced_sizes() const;
  Partition partition(const ImageSet& train) const;

  TrainConfig config_;
  std::optional<ClusterFile> cluster_;
};

}  // namespace syncopate
