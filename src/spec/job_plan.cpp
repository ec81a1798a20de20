#include "spec/job_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "base/errors.hpp"
#include "base/printable.hpp"
#include "base/version.hpp"
#include "scheme/balance.hpp"
#include "scheme/scheme_spec.hpp"
#include "spec/network_file.hpp"

namespace syncopate {
namespace {

constexpr std::size_t letters_of_a_name = 60;

}  // namespace

std::vector<std::uint32_t> max_batch_sizes_of(const TrainConfig& config, std::size_t workers) {
  std::vector<std::uint32_t> most;
  for (std::size_t rank = 0; config.max_batch_size && rank < workers; ++rank) {
    most.push_back(config.max_batch_size->of(rank));
  }
  return most;
}

std::vector<std::uint32_t> batch_sizes_of(const TrainConfig& config, const ClusterFile* cluster) {
  std::vector<double> speeds(cluster != nullptr ? cluster->devices.size() : config.workers, 1.0);
  if (cluster != nullptr) {
    std::ranges::transform(cluster->devices, speeds.begin(), &DeviceProfile::samples_per_second);
  }
  const bool divides = config.global_batch && !traits_of(config).divides_batches;
  const BatchSizes given = config.global_batch
                               ? BatchSizes(*config.global_batch)
                               : config.batch_size.value_or(BatchSizes(usual_batch));
  std::vector<std::uint32_t> sizes;
  if (divides) {
    sizes = divide(*config.global_batch, speeds, least_part_of_batch,
                   max_batch_sizes_of(config, speeds.size()));
  }
  for (std::size_t rank = sizes.size(); rank < speeds.size(); ++rank) {
    sizes.push_back(given.of(rank));
  }
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    const bool has_own = cluster != nullptr && given.listed() == 0;
    sizes[rank] = has_own ? cluster->devices[rank].batch_size.value_or(sizes[rank]) : sizes[rank];
    sizes[rank] = config.max_batch_size ? std::min(sizes[rank], config.max_batch_size->of(rank))
                                        : sizes[rank];
  }
  return sizes;
}

Dataset load_data(const TrainConfig& config) {
  return load_dataset(config.data, config.data_dir, Which::both, config.image_size.value_or(0));
}

JobPlan::JobPlan(TrainConfig config) : config_(std::move(config)) {
  if (config_.cluster.empty()) {
    return;
  }
  cluster_ = read_cluster_file(config_.cluster);
  if (cluster_->devices.size() != config_.workers) {
    throw ConfigError(fmt::format("{} has {} devices, but --workers asks for {}",
                                  config_.cluster.string(), cluster_->devices.size(),
                                  config_.workers));
  }
  check_step_times();
}

/// Refuses steps of days: such a time comes from a wrong unit, and a job of such steps would exceed
/// the range of the clock.
void JobPlan::check_step_times() const {
  constexpr double longest = 86'400;
  const std::vector<std::uint32_t> sizes = batch_sizes();
  for (std::uint32_t rank = 0; rank < config_.workers; ++rank) {
    const DeviceProfile& device = cluster_->devices[rank];
    const std::uint32_t samples = sizes[rank];
    const double seconds = device.step_seconds(samples) * config_.time_scale;
    if (!(seconds <= longest)) {
      throw ConfigError(fmt::format(
          "a batch of {} samples on {} of {} takes {:.3g} s, expected at most {} s; raise "
          "samples_per_second, or lower --time-scale or --batch-size",
          samples, excerpt(device.name, letters_of_a_name), config_.cluster.string(), seconds,
          longest));
    }
  }
}

Partition JobPlan::partition(const ImageSet& train) const {
  const std::vector<std::uint32_t> sizes = batch_sizes();
  const bool drawn = split_of(config_).kind == Split::Kind::dirichlet;
  Partition partition(train.labels, {.seed = config_.seed,
                                     .split = split_of(config_),
                                     .shares = shares_of(train.samples()),
                                     .least = drawn ? sizes : std::vector<std::uint32_t>()});
  expect_samples(partition);
  return partition;
}

/// Refuses shares that leave a worker no sample: it would search for its next sample forever.
void JobPlan::expect_samples(const Partition& partition) const {
  for (std::uint32_t rank = 0; rank < config_.shares.size(); ++rank) {
    if (partition.size(Rank{rank}) == 0) {
      throw ConfigError(fmt::format(
          "shares {} leave worker {} none of {} training samples; give it a larger share",
          shares_text(config_.shares), rank, partition.samples()));
    }
  }
}

/// The sizes of the workers' parts in any unit: the configured shares, if there are any; else, in
/// lockstep, the batch sizes. If workers train at their own speed and a cluster file gives these
/// speeds, the sizes are the speeds, so that all workers end an epoch together. A part holds at
/// least one batch.
std::vector<double> JobPlan::shares_of(std::uint64_t samples) const {
  if (!config_.shares.empty()) {
    return config_.shares;
  }
  const std::vector<std::uint32_t> sizes = batch_sizes();
  if (!cluster_ || !traits_of(config_).parts_by_speed || samples < sizes.size()) {
    return {sizes.begin(), sizes.end()};
  }
  std::vector<double> speeds;
  std::ranges::transform(cluster_->devices, std::back_inserter(speeds),
                         &DeviceProfile::samples_per_second);
  const auto whole = static_cast<std::uint32_t>(samples);
  const auto each = static_cast<std::uint32_t>(samples / sizes.size());
  const std::vector<std::uint32_t> parts =
      divide(whole, speeds, std::min(each, std::ranges::max(sizes)));
  return {parts.begin(), parts.end()};
}

BatchFeed JobPlan::feed(const ImageSet& train, Rank rank) const {
  const bool together = sync_mode() == SyncMode::lockstep && !traits_of(config_).parts_by_speed;
  return BatchFeed(partition(train), rank, batch_sizes(),
                   together ? BatchFeed::LastBatches::divided : BatchFeed::LastBatches::whole);
}

double JobPlan::data_share(const ImageSet& train, Rank rank) const {
  return static_cast<double>(partition(train).size(rank)) / static_cast<double>(train.samples());
}

std::optional<DevicePacer> JobPlan::pacer(Rank rank) const {
  if (!cluster_) {
    return std::nullopt;
  }
  return DevicePacer({.profile = cluster_->devices[rank.value],
                      .pauses = cluster_->pauses,
                      .devices = config_.workers,
                      .rank = rank,
                      .seed = config_.seed,
                      .time_scale = config_.time_scale});
}

std::string JobPlan::device_name(Rank rank, const std::string& real) const {
  const char* how = config_.virtual_time ? "simulated" : "emulated";
  return cluster_ ? fmt::format("{} ({})", cluster_->devices[rank.value].name, how) : real;
}

Duration JobPlan::step_budget(Rank rank) const {
  if (!cluster_) {
    return Duration::zero();
  }
  const std::uint32_t samples = batch_sizes()[rank.value];
  return from_seconds(cluster_->devices[rank.value].step_seconds(samples) * config_.time_scale);
}

/// A member may be suspended, and so silent, for as long as a wait may take: while its connection
/// exists, it has not died.
Membership::Options JobPlan::membership() const {
  const Duration wait_limit = from_seconds(config_.wait_limit);
  Membership::Options options{.workers = config_.workers,
                              .servers = config_.servers,
                              .spares_workers = server_keeps_model() || workers_regroup(),
                              .spares_first = server_keeps_model(),
                              .spares_missing = workers_regroup(),
                              .snapshots_from = server_keeps_model() ? Role::server : Role::worker,
                              .waits = {.wait_limit = wait_limit},
                              .judges_idle_workers = sync_mode() == SyncMode::asynchronous};
  options.silence.floor = std::max(options.silence.floor, wait_limit);
  return options;
}

SyncMode JobPlan::sync_mode() const {
  return traits_of(config_).sync_mode;
}

double JobPlan::samples_per_step() const {
  const std::vector<std::uint32_t> sizes = batch_sizes();
  return std::accumulate(sizes.begin(), sizes.end(), 0.0);
}

double JobPlan::steps_per_epoch(std::uint64_t train_samples) const {
  return static_cast<double>(train_samples) / samples_per_step();
}

std::uint64_t JobPlan::samples_to_train(std::uint64_t train_samples) const {
  if (config_.epochs >= open_end) {
    return std::numeric_limits<std::uint64_t>::max();
  }
  const double samples = config_.epochs * static_cast<double>(train_samples);
  return static_cast<std::uint64_t>(std::ceil(samples - 1e-6));
}

bool JobPlan::cuts_batches() const {
  const std::vector<std::uint32_t> sizes = batch_sizes();
  return traits_of(config_).balances || least_steps() != sizes;
}

std::uint32_t JobPlan::least_step_samples() const {
  const bool by_speeds = traits_of(config_).balances && cluster_;
  return std::ranges::min(by_speeds ? balanced_sizes() : least_steps());
}

/// The fewest samples of a step by rank, without regard to the speeds of devices.
std::vector<std::uint32_t> JobPlan::least_steps() const {
  std::vector<std::uint32_t> least = batch_sizes();
  if (const std::uint32_t part = least_part(); part > 0) {
    std::ranges::transform(least, least.begin(), [&](std::uint32_t batch_size) {
      return std::min(batch_size, std::max(part, least_part_of_batch));
    });
    return least;
  }
  if (const auto cut = scheme_named(config_.scheme).least_step) {
    std::ranges::transform(least, least.begin(), [&](std::uint32_t batch_size) {
      return cut(config_.scheme_options, batch_size);
    });
  }
  return least;
}

/// The balanced batch sizes under the speeds of the device profiles.
std::vector<std::uint32_t> JobPlan::balanced_sizes() const {
  std::vector<double> speeds;
  for (const DeviceProfile& device : cluster_->devices) {
    speeds.push_back(device.samples_per_second());
  }
  const std::vector<std::uint32_t> sizes = batch_sizes();
  return divide(std::accumulate(sizes.begin(), sizes.end(), 0U), speeds, 1);
}

double JobPlan::profiled_throughput(Rank rank) const {
  if (!cluster_) {
    return 0;
  }
  const DeviceProfile& device = cluster_->devices[rank.value];
  const std::uint32_t whole = batch_sizes()[rank.value];
  const bool in_proportion = device.step_overhead == Duration::zero();
  const double speed =
      in_proportion ? device.samples_per_second() : whole / device.step_seconds(whole);
  return speed / config_.time_scale;
}

PushWeight JobPlan::push_weight() const {
  if (config_.weights == Weights::uniform || config_.workers == 1) {
    return {};
  }
  const bool averaged = consistency().kind == ConsistencyOptions::Kind::backup;
  return {.unit = averaged ? 1 : samples_per_step() / config_.workers};
}

std::optional<Pacer::Options> JobPlan::pacing(std::uint64_t done) const {
  const SchemeSpec& scheme = scheme_named(config_.scheme);
  if (scheme.pace == nullptr) {
    return std::nullopt;
  }
  Pacer::Options options{.batch_sizes = batch_sizes(), .done = done};
  if (traits_of(config_).divides_batches) {
    options.global_batch = config_.global_batch.value_or(0);
  }
  scheme.pace(config_.scheme_options, options);
  if (measures_batches() && has_batch_norm(*config_.network)) {
    options.least_part = std::max(options.least_part, batch_norm_samples);
  }
  return options;
}

std::uint32_t JobPlan::least_part() const {
  const std::optional<Pacer::Options> options = pacing(0);
  return options && options->global_batch > 0 ? options->least_part : 0;
}

bool JobPlan::server_keeps_model() const {
  return syncopate::server_keeps_model(config_);
}

bool JobPlan::workers_regroup() const {
  return traits_of(config_).regroups;
}

ConsistencyOptions JobPlan::consistency() const {
  return server_keeps_model() ? server_policy_of(config_).consistency
                              : ConsistencyOptions{.kind = ConsistencyOptions::Kind::reduce};
}

RuleSpec JobPlan::server_rule() const {
  const auto own = server_policy_of(config_).optimizer;
  return {.name = std::string(name_of_value(own ? own->optimizer : config_.optimizer)),
          .momentum = config_.momentum,
          .weight_decay = config_.weight_decay,
          .beta1 = config_.beta1,
          .beta2 = config_.beta2,
          .alpha = config_.alpha,
          .epsilon = config_.epsilon};
}

Schedule JobPlan::server_schedule() const {
  TrainConfig config = config_;
  if (const auto own = server_policy_of(config_).optimizer) {
    config.learning_rate = own->learning_rate;
  }
  return schedule_of(config);
}

std::optional<DelayCompensation::Options> JobPlan::delay_compensation() const {
  return server_policy_of(config_).compensation;
}

std::optional<std::uint64_t> JobPlan::max_delay() const {
  return server_policy_of(config_).max_delay;
}

std::string JobPlan::agreement(std::size_t parameters) const {
  const NetworkSpec& network = *config_.network;
  const std::string checksum =
      network.file.empty() ? "" : fmt::format("checksum {}, ", network_checksum(network.file));
  return fmt::format(
      "syncopate {}: {} of {} ({}{} float32 parameters) on {} by {} workers, seed {}", version,
      config_.scheme, network.name, checksum, parameters, config_.data, config_.workers,
      config_.seed);
}

}  // namespace syncopate
