#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time.hpp"
#include "pacer/pace_estimate.hpp"
#include "pacer/pacer_client.hpp"

namespace syncopate {

/// The speed of a device, as the plan of a round needs it.
struct DeviceSpeed {
  double sample_seconds = 0;  ///< 0: unknown
  std::uint32_t batch_size = 0;
  /// Its part of the global batch, at most `batch_size`; 0: there is none, or it is not known.
  std::uint32_t part = 0;
  std::uint32_t least_part = 1;  ///< of the global batch: smaller steps are slow

  /// The samples of the least whole step.
  std::uint32_t least_whole() const { return part > 0 ? part : batch_size; }
  /// The least samples that are worth a step: `probe_samples` of a whole one, and the least part.
  std::uint32_t least_step() const {
    return std::max(probe_samples(std::max(least_whole(), 2U)), std::min(least_part, batch_size));
  }
};

/// Sets the parts of a global batch in proportion to the speeds, so that all devices take as long
/// for their parts; each of at least two samples, and its device's least part. Without effect where
/// a speed is unknown.
void divide_global_batch(std::vector<DeviceSpeed>& devices, std::uint32_t global_batch);

/// The shortest round in which communication takes at most 5 %, the fastest device trains on a
/// whole mini-batch, and the slowest on `probe_samples` of its own:
///
///     T = max(q / 0.05, q' + min_i(b_i c_i), q' + max_i(probe_samples(b_i) · c_i) / M)
///
/// with q the time of a synchronization, c_i seconds per sample, b_i least whole steps, q' = q
/// where devices wait for the result of a synchronization (`waits`), else 0, and M the longest
/// period: the slowest device need not synchronize in every round.
Duration shortest_round(std::span<const DeviceSpeed> devices, Duration synchronization, bool waits,
                        std::uint32_t longest_period = 1);

/// The period of a device in rounds of this length: the least power of two, at most `longest`, such
/// that it has time for `probe_samples` from one of its synchronizations to the next. Returns
/// `current` where that is off by no more than a tenth, so that fluctuating times change no
/// periods.
std::uint32_t period_of(const DeviceSpeed& device, Duration round_time, std::uint32_t current,
                        std::uint32_t longest);

/// The next length of a round: half way from `current` to `wanted`, which is measured and
/// fluctuates. It stays `current` if the two differ by at most a tenth. It at most doubles, because
/// a round that is far too long by a mistake cannot be shortened while it lasts.
Duration smoothed_round_time(Duration current, Duration wanted);

/// Samples for each step of a device that has `time` from one synchronization to the next: whole
/// steps if these fit, else the share that fits, at least `probe_samples`. A whole step takes a
/// mini-batch; where the device has a part of a global batch, half of what fits, at least its part:
/// many small steps without a synchronization would ruin a model. Returns `current` if that is off
/// by no more than a twentieth or three quarters of a sample, so that fluctuating times change no
/// sizes.
std::uint32_t fitting_samples(const DeviceSpeed& device, Duration time, std::uint32_t current);

/// Plans the ends of timed rounds: round r ends at F_r = max(F_{r−1}, last entry into
/// synchronization r−1) + T. A pure state machine.
class RoundPlan {
 public:
  struct Options {
    std::optional<Duration> round_time{};  ///< T; empty: as `shortest_round` computes it
    bool overlap = true;                   ///< devices do not wait for a synchronization's result
    std::uint32_t longest_period = 1;      ///< a power of two
  };

  explicit RoundPlan(const Options& options);

  /// Records that a synchronization took `time`, as a worker reports in round `reported_in`.
  ///
  /// Every worker reports the same synchronization, in the round after it or one later. So all
  /// outliers that are reported within a round of the first one count as one: a single stall of a
  /// server or a link must not look like two outliers in a row, which the estimate would take for
  /// usual.
  void observe_synchronization(std::uint64_t reported_in, Duration time);
  /// q, estimated; zero: unknown.
  Duration synchronization_time() const { return synchronizations_.step_time(1); }
  /// The part of q in which devices wait.
  Duration waiting_time() const;

  /// T; empty: not known yet.
  std::optional<Duration> round_time() const { return round_time_; }
  /// T as `shortest_round` computes it.
  Duration wanted_round_time(std::span<const DeviceSpeed> devices) const;
  /// The time for a device's steps from a synchronization to its next one, `period` rounds later.
  /// Before T is known, `devices` determine it.
  Duration computing_time(std::span<const DeviceSpeed> devices, std::uint32_t period = 1) const;
  /// The period of a device whose period is `current`; `current` before T is known.
  std::uint32_t period_of(const DeviceSpeed& device, std::uint32_t current) const;

  /// True if the end of the open round is planned.
  bool is_planned() const { return end_.has_value(); }
  /// Plans the end of the open round.
  void plan(std::span<const DeviceSpeed> devices, TimePoint now);
  /// Called when the last worker has entered the synchronization: opens the next round, which is
  /// not planned yet.
  void open_next(TimePoint now);
  /// Forgets the rounds before: the next round begins at the moment of its plan.
  void restart();
  /// True if a device synchronizes after the step that ends at `end`, rather than after another
  /// step. Requires `is_planned()`.
  bool ends_round(TimePoint end, Duration step) const;
  /// The same for a device that misses rounds, in the round that is `rounds_ahead` after the open
  /// one. It comes early rather than late: its steps are long, and the others would wait for it.
  bool ends_rounds(TimePoint end, Duration step, std::uint64_t rounds_ahead) const;

  const PaceEstimate& synchronizations() const { return synchronizations_; }
  /// Continues with the estimates of another plan. `round_time` is ignored if it is zero, or if the
  /// options give one.
  void load(const PaceEstimate::State& synchronizations, Duration round_time);

 private:
  void begin_with_synchronization();

  Options options_;
  PaceEstimate synchronizations_;  ///< one counts as a step of one sample
  std::optional<std::uint64_t>
      stalled_;                         ///< the round in which the last outlier was first reported
  std::optional<Duration> round_time_;  ///< T
  bool knew_synchronization_ = false;   ///< T has been planned with q
  std::optional<TimePoint> base_;       ///< max(F_{r−1}, last entry into synchronization r−1)
  std::optional<TimePoint> end_;        ///< F_r
};

}  // namespace syncopate
