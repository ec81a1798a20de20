#include "train/job_plan.hpp"

#include <fmt/format.h>

#include "base/errors.hpp"
#include "base/version.hpp"

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

BatchFeed JobPlan::feed(const ImageSet& train, Rank rank) const {
  const std::vector<std::uint32_t> sizes = batch_sizes();
  Partition partition(train.labels, {.seed = config_.seed,
                                     .split_by_class = config_.split_by_class,
                                     .shares = {sizes.begin(), sizes.end()}});
  return BatchFeed(std::move(partition), rank, sizes);
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
  return cluster_ ? fmt::format("{} (emulated)", cluster_->devices[rank.value].name) : real;
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
  return {.workers = config_.workers, .servers = config_.servers, .evaluators = 1};
}

std::string JobPlan::agreement(std::size_t parameters) const {
  return fmt::format("syncopate {}: {} of {} ({} parameters) on {} by {} workers, seed {}", version,
                     config_.scheme, config_.network, parameters, config_.data, config_.workers,
                     config_.seed);
}

}  // namespace syncopate
