#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/batch_feed.hpp"
#include "data/dataset.hpp"
#include "device/cluster_file.hpp"
#include "membership/membership.hpp"
#include "optim/delay_compensation.hpp"
#include "optim/schedule.hpp"
#include "optim/update_rule.hpp"
#include "pacer/pacer.hpp"
#include "scheme/scheme_spec.hpp"
#include "server/consistency.hpp"
#include "spec/config.hpp"

namespace syncopate {

/// The dataset of a configuration. Errors: as `load_dataset`.
Dataset load_data(const TrainConfig& config);

/// Samples of a mini-batch, by rank. A global batch is divided by the speeds of the devices, where
/// these are known, into parts of at least two samples, unless the scheme divides it while it runs
/// (`SchemeTraits::divides_batches`): then it is the mini-batch of each worker. A device's own
/// mini-batch in a cluster file stays, unless the configuration lists those of all workers. No
/// mini-batch is larger than `--max-batch-size` says.
/// `cluster`: null without one.
std::vector<std::uint32_t> batch_sizes_of(const TrainConfig& config, const ClusterFile* cluster);

/// The most samples of a step, by rank; empty: any number.
std::vector<std::uint32_t> max_batch_sizes_of(const TrainConfig& config, std::size_t workers);

/// The consequences of a resolved configuration and its cluster file, equal on every node.
class JobPlan {
 public:
  /// `config` is resolved, so it holds the number of workers.
  /// Errors: ConfigError if the cluster file cannot be read or has another number of devices, or a
  ///         step of a device takes longer than a day at the time scale.
  explicit JobPlan(TrainConfig config);

  const TrainConfig& config() const { return config_; }

  /// Samples per step, by rank.
  std::vector<std::uint32_t> batch_sizes() const {
    return batch_sizes_of(config_, cluster_ ? &*cluster_ : nullptr);
  }
  /// The order of a worker's samples. With split iid, all workers end an epoch together: in
  /// lockstep, parts are proportional to batch sizes; in other sync modes, to the speeds of the
  /// cluster file.
  /// Errors: ConfigError if the split leaves a worker too few samples.
  BatchFeed feed(const ImageSet& train, Rank rank) const;
  /// The division of the data behind `feed`.
  Partition partition(const ImageSet& train) const;
  /// A worker's share of all training samples: its weight in a mean with `--weights data`.
  double data_share(const ImageSet& train, Rank rank) const;
  /// Empty for a real device.
  std::optional<DevicePacer> pacer(Rank rank) const;
  /// "gpu-old (emulated)", "gpu-old (simulated)", or `real` for a real device.
  std::string device_name(Rank rank, const std::string& real) const;
  /// The time of one mini-batch by the device's profile; zero for a real device.
  Duration step_budget(Rank rank) const;

  /// The members of the job, and whether it survives the loss of workers.
  Membership::Options membership() const;
  /// How the steps of workers depend on each other.
  SyncMode sync_mode() const;
  /// Samples that the job trains on while every worker does one step.
  double samples_per_step() const;
  double steps_per_epoch(std::uint64_t train_samples) const;
  /// Samples of all workers in all epochs.
  std::uint64_t samples_to_train(std::uint64_t train_samples) const;
  /// True if a step may be smaller than the worker's batch, except at the end of an epoch.
  bool cuts_batches() const;
  /// True if workers measure below which size of steps their devices are slow.
  bool measures_batches() const { return traits_of(config_).measures_batches; }
  /// The fewest samples of a step on any device under this configuration. For balanced workers, the
  /// speeds of the cluster file determine it.
  std::uint32_t least_step_samples() const;
  /// Samples per second of an emulated device by itself, in steps of its whole batch; 0 for a real
  /// one.
  double profiled_throughput(Rank rank) const;
  /// The weight of a gradient that workers do not average themselves. If each gradient is an
  /// update, a batch of the mean size has weight 1. With a single worker, the result is sequential
  /// SGD.
  PushWeight push_weight() const;

  /// The settings of the pacer, for a job with paced workers. `done`: the rounds before, in a
  /// resumed run.
  std::optional<Pacer::Options> pacing(std::uint64_t done) const;

  /// The least part of a global batch that the pacer divides, before workers have measured their
  /// devices; 0: there is none.
  std::uint32_t least_part() const;

  /// True if a parameter server holds the model, instead of only reducing.
  bool server_keeps_model() const;
  /// True if synchronizing workers continue without a lost one.
  bool workers_regroup() const;
  ConsistencyOptions consistency() const;
  RuleSpec server_rule() const;
  /// The schedule of the server's learning rate.
  Schedule server_schedule() const;
  std::optional<DelayCompensation::Options> delay_compensation() const;
  /// The updates of the model from which on a server drops a gradient that does not see them.
  std::optional<std::uint64_t> max_delay() const;

  /// The text on which every member of the job must agree.
  std::string agreement(std::size_t parameters) const;

 private:
  void check_step_times() const;
  void expect_samples(const Partition& partition) const;
  std::vector<std::uint32_t> least_steps() const;
  std::vector<double> shares_of(std::uint64_t samples) const;
  std::vector<std::uint32_t> balanced_sizes() const;

  TrainConfig config_;
  std::optional<ClusterFile> cluster_;
};

}  // namespace syncopate
