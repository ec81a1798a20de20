#include "train/job_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/errors.hpp"
#include "base/version.hpp"
#include "scheme/balance.hpp"
#include "scheme/scheme_table.hpp"

namespace syncopate {

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
}

std::vector<std::uint32_t> JobPlan::batch_sizes() const {
  std::vector<std::uint32_t> sizes(config_.workers, config_.batch_size);
  for (std::size_t rank = 0; cluster_ && rank < sizes.size(); ++rank) {
    sizes[rank] = cluster_->devices[rank].batch_size.value_or(config_.batch_size);
  }
  return sizes;
}

Partition JobPlan::partition(const ImageSet& train) const {
  const std::vector<std::uint32_t> sizes = batch_sizes();
  const bool drawn = split_of(config_).kind == Split::Kind::dirichlet;
  return {train.labels,
          {.seed = config_.seed,
           .split = split_of(config_),
           .shares = {sizes.begin(), sizes.end()},
           .least = drawn ? sizes : std::vector<std::uint32_t>()}};
}

BatchFeed JobPlan::feed(const ImageSet& train, Rank rank) const {
  return BatchFeed(partition(train), rank, batch_sizes());
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
  const double samples = batch_sizes()[rank.value];
  return from_seconds(samples / cluster_->devices[rank.value].samples_per_second() *
                      config_.time_scale);
}

Membership::Options JobPlan::membership() const {
  return {.workers = config_.workers,
          .servers = config_.servers,
          .spares_workers = server_keeps_model() || workers_regroup(),
          .spares_first = server_keeps_model(),
          .spares_missing = workers_regroup(),
          .waits = {.wait_limit = from_seconds(config_.wait_limit)}};
}

Gait JobPlan::gait() const {
  if (server_keeps_model() || meets_in_shared_memory(config_)) {
    return Gait::alone;
  }
  // Balanced workers are at the same step, but not at the same place of their parts.
  return config_.balance ? Gait::in_rounds : scheme_info(config_.scheme).gait;
}

double JobPlan::samples_per_step() const {
  const std::vector<std::uint32_t> sizes = batch_sizes();
  return std::accumulate(sizes.begin(), sizes.end(), 0.0);
}

BatchCut JobPlan::batch_cut(Rank rank) const {
  return {.batch_size = batch_sizes()[rank.value], .mini_batches = config_.mini_batches};
}

double JobPlan::steps_per_epoch(std::uint64_t train_samples) const {
  return static_cast<double>(train_samples) / samples_per_step();
}

std::uint64_t JobPlan::samples_to_train(std::uint64_t train_samples) const {
  const double samples = config_.epochs * static_cast<double>(train_samples);
  return static_cast<std::uint64_t>(std::ceil(samples - 1e-6));
}

bool JobPlan::cuts_batches() const {
  const bool timed = is_paced(config_) && config_.pacing == "timed";
  const bool mini = config_.scheme == "nbssgd" && config_.mini_batches > 1;
  return timed || mini || config_.balance;
}

std::uint32_t JobPlan::least_step_samples() const {
  const std::vector<std::uint32_t> sizes = batch_sizes();
  std::vector<std::uint32_t> least = sizes;
  if (config_.balance && cluster_) {
    least = balanced_sizes();
  }
  for (std::uint32_t rank = 0; rank < sizes.size(); ++rank) {
    if (is_paced(config_) && config_.pacing == "timed") {
      least[rank] = probe_samples(sizes[rank]);
    } else if (config_.scheme == "nbssgd") {
      least[rank] = batch_cut(Rank{rank}).size();
    }
  }
  return std::ranges::min(least);
}

/// As they come to be when every device keeps the speed of its profile.
std::vector<std::uint32_t> JobPlan::balanced_sizes() const {
  std::vector<double> speeds;
  for (const DeviceProfile& device : cluster_->devices) {
    speeds.push_back(device.samples_per_second());
  }
  const std::vector<std::uint32_t> sizes = batch_sizes();
  return divide(std::accumulate(sizes.begin(), sizes.end(), 0U), speeds, 1);
}

double JobPlan::profiled_throughput(Rank rank) const {
  return cluster_ ? cluster_->devices[rank.value].samples_per_second() / config_.time_scale : 0;
}

PushWeight JobPlan::push_weight() const {
  if (config_.weights == "uniform" || config_.workers == 1) {
    return {};
  }
  const bool averaged = consistency().kind == ConsistencyOptions::Kind::backup;
  return {.unit = averaged ? 1 : samples_per_step() / config_.workers};
}

std::optional<Pacer::Options> JobPlan::pacing(std::uint64_t done) const {
  if (!is_paced(config_)) {
    return std::nullopt;
  }
  Pacer::Options options{.batch_sizes = batch_sizes(),
                         .rule = pace_rule(),
                         .overlap = config_.overlap != "off",
                         .done = done};
  if (config_.round_time) {
    options.round_time = from_seconds(*config_.round_time);
  }
  if (config_.pacing_margin) {
    options.margin = from_seconds(*config_.pacing_margin);
  }
  return options;
}

FirstPace JobPlan::first_pace(Rank rank) const {
  return syncopate::first_pace(pace_rule(), batch_sizes()[rank.value]);
}

PaceRule JobPlan::pace_rule() const {
  return config_.pacing == "paper" ? PaceRule::paper : PaceRule::timed;
}

RuleSpec JobPlan::outer_rule() const {
  return {.name = config_.outer_optimizer, .momentum = config_.outer_momentum};
}

bool JobPlan::server_keeps_model() const {
  return syncopate::server_keeps_model(config_);
}

bool JobPlan::workers_regroup() const {
  return config_.scheme == "esync" && !has_server(config_);
}

ConsistencyOptions JobPlan::consistency() const {
  using Kind = ConsistencyOptions::Kind;
  ConsistencyOptions options{.slack = config_.slack, .backup_workers = config_.backup_workers};
  options.moving_rate = static_cast<float>(config_.moving_rate.value_or(0));
  if (!server_keeps_model()) {
    options.kind = Kind::sums;
  } else if (config_.scheme == "ssp") {
    options.kind = Kind::bounded;
  } else if (config_.scheme == "backup") {
    options.kind = Kind::backup;
  } else if (config_.scheme == "easgd") {
    options.kind = Kind::elastic;
  }
  return options;
}

RuleSpec JobPlan::server_rule() const {
  return {.name = config_.scheme == "downpour" ? config_.server_optimizer : config_.optimizer,
          .momentum = config_.momentum,
          .weight_decay = config_.weight_decay,
          .beta1 = config_.beta1,
          .beta2 = config_.beta2,
          .alpha = config_.alpha,
          .epsilon = config_.epsilon};
}

Schedule JobPlan::server_schedule() const {
  TrainConfig config = config_;
  if (config.scheme == "downpour") {
    config.learning_rate = config.server_learning_rate;
  }
  return Schedule(config);
}

std::optional<DelayCompensation::Options> JobPlan::delay_compensation() const {
  if (config_.scheme != "dc-asgd") {
    return std::nullopt;
  }
  return DelayCompensation::Options{.lambda = config_.lambda.value(),
                                    .adaptive = config_.compensation == "adaptive"};
}

std::string JobPlan::agreement(std::size_t parameters) const {
  return fmt::format("syncopate {}: {} of {} ({} float32 parameters) on {} by {} workers, seed {}",
                     version, config_.scheme, config_.network, parameters, config_.data,
                     config_.workers, config_.seed);
}

}  // namespace syncopate
