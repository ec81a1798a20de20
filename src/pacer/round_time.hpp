#pragma once

#include <cstdint>
#include <span>

#include "base/time.hpp"

namespace syncopate {

/// What is known of a device where the length of rounds is planned.
struct DeviceSpeed {
  double sample_seconds = 0;  ///< 0: unknown
  std::uint32_t batch_size = 0;
};

/// The shortest round in which communication takes at most 5 %, the fastest device trains on a whole
/// mini-batch, and the slowest on `probe_samples` of its own:
///
///     T = max(q / 0.05, q' + min_i(b_i c_i), q' + max_i(probe_samples(b_i) · c_i))
///
/// with q the time of a meeting, c_i seconds per sample, b_i mini-batches, and q' = q where devices
/// wait for the sum of a meeting (`waits`), else 0.
Duration shortest_round(std::span<const DeviceSpeed> devices, Duration meeting, bool waits);

/// The next length of a round: half the way to the one wanted, which is measured and flutters; the
/// same as before where that is within a tenth.
Duration followed(Duration current, Duration wanted);

/// Samples for each step of a device that has `time` for one: whole mini-batches if these fit, else
/// the share that fits, at least `probe_samples`. It is `current` still if that is off by no more than
/// a twentieth or three quarters of a sample, so that measured times that flutter change no sizes.
std::uint32_t fitting_samples(const DeviceSpeed& device, Duration time, std::uint32_t current);

}  // namespace syncopate
