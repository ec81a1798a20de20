#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "device/cluster_file.hpp"
#include "job/spec/config.hpp"

namespace syncopate::cli {

/// What a run is expected to come to, at most: it may end earlier.
struct Workload {
  double samples = 0;
  double training_seconds = 0;
};

/// From the speeds of the cluster's devices: in step, or bound to it as with ssp, all wait for the
/// slowest; else each trains at its own speed. Without a cluster file the speed is unknown, and
/// seconds are those of `--max-time`.
Workload workload_of(const TrainConfig& config, const ClusterFile* cluster,
                     std::uint64_t train_samples);

/// How long a comparison still takes. Pure: the caller reports what has begun and ended, and how long that took.
///
/// A real run takes its training seconds and a few more. A virtual one takes its arithmetic, at the
/// samples per second that virtual runs had so far; before the first has ended nothing is known.
class Forecast {
 public:
  /// `width`: how many virtual runs go on at a time.
  explicit Forecast(std::uint32_t width) : width_(width) {}

  void expect(const Workload& run, bool virtual_time);
  /// A run ended, after `seconds` of real time. One that diverged says nothing of others.
  void ended(const Workload& run, bool virtual_time, std::optional<double> seconds);

  /// Seconds, when the runs under way have done `progress` of their work (virtual ones in samples).
  std::optional<double> remaining(const Workload& progress = {}) const;

 private:
  double virtual_samples_ = 0;  ///< still to be trained on
  double real_seconds_ = 0;
  double measured_samples_ = 0;
  double measured_seconds_ = 0;
  double width_;
};

}  // namespace syncopate::cli
