#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace syncopate {

/// Outages of a cluster: every `every`, one device, drawn by the job's seed, stands still for
/// `lasting`.
struct PauseProfile {
  Duration every{};
  Duration lasting{};
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

  explicit DevicePacer(Options options);

  /// The end of `step` over `samples` samples begun at `start` of the training clock. Proportional
  /// to the samples, log-normal jitter of mean 1, moved back by the outages on the way.
  Duration end_of_step(Step step, std::uint32_t samples, Duration start) const;

 private:
  Options options_;
};

}  // namespace syncopate
