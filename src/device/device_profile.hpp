#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace syncopate {

/// Outages of a cluster: every `every` of the training clock, one device, drawn by the job's seed,
/// stands still for `lasting`. The k-th outage (k ≥ 1) is [k · every, k · every + lasting).
struct PauseProfile {
  Duration every{};
  Duration lasting{};  ///< shorter than `every`: no two outages at a time
};

/// How fast a device is: what paces an emulated device in real time and prices a step in the
/// simulator.
struct DeviceProfile {
  std::string name;       ///< "gpu-new"
  Duration batch_time{};  ///< to compute one mini-batch of `batch_samples`, update included
  std::uint32_t batch_samples = 64;
  double jitter = 0;  ///< standard deviation of a step's time, relative to its mean
  std::optional<std::uint32_t> batch_size;  ///< trains with this instead of the job's batch size

  double samples_per_second() const;
};

/// When the steps of one emulated device end. Pure: the same seed, rank, step and start give the
/// same end, so that a resumed run sees the device that it left.
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

  /// Errors: ConfigError, for a time scale not above 0 or outages not shorter than their interval.
  explicit DevicePacer(Options options);

  /// What a step over `samples` samples takes on the average, outages apart: the budget that a
  /// machine must keep to in order to emulate the device.
  Duration mean_step_time(std::uint32_t samples) const;

  /// The end of `step` over `samples` samples begun at `start` of the training clock.
  ///
  /// The time is `mean_step_time` · exp(σ·z − σ²/2) with z standard normal and σ² = ln(1 +
  /// jitter²): log-normal, of mean 1 and standard deviation `jitter`. The device does nothing
  /// during its outages: the end moves back by their overlap with the step.
  Duration end_of_step(Step step, std::uint32_t samples, Duration start) const;

  struct Ended {
    Duration ended{};    ///< of the training clock, by `end_of_step`
    Duration held_up{};  ///< after it, by others: for messages, for workers who were not there yet
    std::uint32_t samples = 0;  ///< of that step
  };
  /// When the device begins the step after this one, where the machine that emulates it is there at
  /// `now`: as soon as nothing holds it up, so that a machine that was late makes up for it with
  /// the next step. What it is late by more than a step of that size is lost.
  Duration begin_after(const Ended& step, Duration now) const;

 private:
  double jitter_factor(Step step) const;
  bool is_hit(std::uint64_t outage) const;
  Duration end_of_work(Duration start, Duration work) const;

  Options options_;
  PauseProfile pauses_;  ///< at the time scale; `every` 0: none
};

}  // namespace syncopate
