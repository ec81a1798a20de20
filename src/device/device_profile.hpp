#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace syncopate {

/// Outages of a cluster: after each `every` of the training clock, one device, which is drawn by
/// the job's seed, stands still for `lasting`. The k-th outage (k ≥ 1) is [k · every, k · every +
/// lasting).
struct PauseProfile {
  Duration every{};
  Duration lasting{};  ///< shorter than `every`: no two outages at a time
};

/// The speed of a device. It paces an emulated device in real time, and is the cost of a step in
/// the simulator.
struct DeviceProfile {
  std::string name;       ///< "gpu-new"
  Duration batch_time{};  ///< to compute one mini-batch of `batch_samples`, update included
  std::uint32_t batch_samples = 64;
  double jitter = 0;  ///< standard deviation of a step's time, relative to its mean
  std::optional<std::uint32_t> batch_size;  ///< trains with this instead of the job's batch size
  /// The part of `batch_time` that a step of any size takes; the rest grows with the samples.
  Duration step_overhead{};

  /// In steps of `batch_samples`.
  double samples_per_second() const;
  /// Seconds of a step without jitter. A step without samples takes none.
  double step_seconds(std::uint32_t samples) const;
};

/// Computes when the steps of one emulated device end. Pure: the same seed, rank, step and start
/// give the same end, so that a resumed run sees the device that it left.
class DevicePacer {
 public:
  struct Options {
    DeviceProfile profile;
    std::optional<PauseProfile> pauses;
    std::uint32_t devices = 1;  ///< of the cluster, among which an outage is drawn
    Rank rank;
    std::uint64_t seed = 0;
    double time_scale = 1;  ///< stretches every duration of the profile
  };

  /// Errors: ConfigError if the time scale is not above 0, or outages are not shorter than their
  ///         interval.
  explicit DevicePacer(Options options);

  /// The mean time of a step over `samples` samples, without outages: the time limit of a machine
  /// that emulates the device.
  Duration mean_step_time(std::uint32_t samples) const;

  /// The end of `step` over `samples` samples begun at `start` of the training clock.
  ///
  /// The time is `mean_step_time` · exp(σ·z − σ²/2) with z standard normal and σ² = ln(1 +
  /// jitter²): log-normal, of mean 1 and standard deviation `jitter`. The device does nothing
  /// during its outages: the end moves back by their overlap with the step.
  Duration end_of_step(Step step, std::uint32_t samples, Duration start) const;

  struct Ended {
    Duration ended{};           ///< of the training clock, by `end_of_step`
    Duration held_up{};         ///< after it, waiting for messages and for other workers
    std::uint32_t samples = 0;  ///< of that step
  };
  /// The start of the next step on the emulated device, at time `now` of the emulating machine. The
  /// device starts as soon as it does not wait for others, so a late machine catches up in the next
  /// step. A delay beyond the length of one step is not caught up.
  Duration begin_after(const Ended& step, Duration now) const;

 private:
  double jitter_factor(Step step) const;
  bool is_hit(std::uint64_t outage) const;
  Duration end_of_work(Duration start, Duration work) const;

  Options options_;
  PauseProfile pauses_;  ///< at the time scale; `every` 0: none
};

}  // namespace syncopate
