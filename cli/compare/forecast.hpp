#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "device/cluster_file.hpp"
#include "spec/config.hpp"

namespace syncopate::cli {

/// Upper bound of the work of a run, which may end earlier.
struct Workload {
  double samples = 0;
  double training_seconds = 0;
};

/// Estimates the work from the speeds of the cluster's devices. In lockstep, and with a staleness
/// bound, all devices wait for the slowest; otherwise each trains at its own speed. Without a
/// cluster file the speed is unknown, and the seconds are those of `--max-time`.
Workload workload_of(const TrainConfig& config, const ClusterFile* cluster,
                     std::uint64_t train_samples);

/// Estimates the remaining time of a comparison. Pure: the caller reports the begin, the end and
/// the duration of each run.
///
/// A real run takes its training seconds and a few more. A virtual run takes the time of its
/// arithmetic, at the samples per second of the virtual runs so far; before the first one has
/// ended, that speed is unknown.
class Forecast {
 public:
  /// `width`: the number of virtual runs in parallel.
  explicit Forecast(std::uint32_t width) : width_(width) {}

  void expect(const Workload& run, bool virtual_time);
  /// Reports that a run ended after `seconds` of real time; empty for a run that diverged, which
  /// does not count for the speed.
  void ended(const Workload& run, bool virtual_time, std::optional<double> seconds);

  /// The remaining seconds, when the active runs have done `progress` of their work (virtual runs
  /// in samples).
  std::optional<double> remaining(const Workload& progress = {}) const;

 private:
  double virtual_samples_ = 0;  ///< still to be trained on
  double real_seconds_ = 0;
  double measured_samples_ = 0;
  double measured_seconds_ = 0;
  double width_;
};

}  // namespace syncopate::cli
