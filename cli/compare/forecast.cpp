#include "cli/compare/forecast.hpp"

#include <algorithm>
#include <vector>

#include "scheme/scheme_spec.hpp"
#include "spec/job_plan.hpp"

namespace syncopate::cli {
namespace {

/// Seconds to start the processes of a run, for its last test, and to end them.
constexpr double seconds_around_a_run = 6;

struct Speeds {
  double lockstep = 0;      ///< samples per second if all wait for the slowest
  double asynchronous = 0;  ///< the same if no device waits
  double batch = 0;         ///< samples of one step of all devices
};

Speeds speeds_of(const TrainConfig& config, const ClusterFile& cluster) {
  Speeds speeds;
  double slowest = 0;
  const std::vector<std::uint32_t> sizes = batch_sizes_of(config, &cluster);
  for (std::size_t rank = 0; rank < cluster.devices.size(); ++rank) {
    const DeviceProfile& device = cluster.devices[rank];
    speeds.batch += sizes[rank];
    speeds.asynchronous += device.samples_per_second() / config.time_scale;
    slowest = std::max(slowest, device.step_seconds(sizes[rank]) * config.time_scale);
  }
  speeds.lockstep = speeds.batch / slowest;
  return speeds;
}

}  // namespace

Workload workload_of(const TrainConfig& config, const ClusterFile* cluster,
                     std::uint64_t train_samples) {
  Workload work{.samples = config.epochs * static_cast<double>(train_samples)};
  if (cluster == nullptr) {
    work.training_seconds = config.max_time.value_or(0);
    return work;
  }
  const Speeds speeds = speeds_of(config, *cluster);
  const SchemeTraits& traits = scheme_named(config.scheme).traits;
  const bool lockstep = traits.sync_mode == SyncMode::lockstep || traits.waits_for_slowest;
  const double speed = lockstep ? speeds.lockstep : speeds.asynchronous;
  if (config.max_steps && lockstep) {
    work.samples = std::min(work.samples, static_cast<double>(*config.max_steps) * speeds.batch);
  }
  if (config.max_time) {
    work.samples = std::min(work.samples, *config.max_time * speed);
  }
  work.training_seconds = work.samples / speed;
  return work;
}

void Forecast::expect(const Workload& run, bool virtual_time) {
  if (virtual_time) {
    virtual_samples_ += run.samples;
  } else {
    real_seconds_ += run.training_seconds + seconds_around_a_run;
  }
}

void Forecast::ended(const Workload& run, bool virtual_time, std::optional<double> seconds) {
  if (!virtual_time) {
    real_seconds_ -= run.training_seconds + seconds_around_a_run;
    return;
  }
  virtual_samples_ -= run.samples;
  if (seconds) {
    measured_samples_ += run.samples;
    measured_seconds_ += *seconds;
  }
}

std::optional<double> Forecast::remaining(const Workload& progress) const {
  const double real = std::max(0.0, real_seconds_ - progress.training_seconds);
  const double samples = std::max(0.0, virtual_samples_ - progress.samples);
  if (samples < 1) {
    return real;
  }
  if (measured_samples_ <= 0) {
    return std::nullopt;
  }
  return real + samples * measured_seconds_ / measured_samples_ / width_;
}

}  // namespace syncopate::cli
