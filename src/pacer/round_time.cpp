#include "pacer/round_time.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "pacer/pacer_client.hpp"

namespace syncopate {
namespace {

constexpr double communication_share = 0.05;
constexpr double steady = 0.1;
constexpr double same_size = 0.05;
constexpr double same_samples = 0.75;
/// Durations are whole nanoseconds: a share that fits exactly must not lose a sample by rounding.
constexpr double rounding = 1e-3;

}  // namespace

Duration shortest_round(std::span<const DeviceSpeed> devices, Duration meeting, bool waits) {
  double fastest = std::numeric_limits<double>::infinity();
  double probe = 0;
  for (const DeviceSpeed& device : devices) {
    fastest = std::min(fastest, device.sample_seconds * device.batch_size);
    probe = std::max(probe, device.sample_seconds * probe_samples(device.batch_size));
  }
  const double computing = devices.empty() ? 0 : std::max(fastest, probe);
  const double waiting = waits ? to_seconds(meeting) : 0;
  return from_seconds(std::max(to_seconds(meeting) / communication_share, waiting + computing));
}

Duration followed(Duration current, Duration wanted) {
  const Duration way = wanted - current;
  const bool stays = std::abs(to_seconds(way)) <= steady * to_seconds(current);
  return stays ? current : current + way / 2;
}

std::uint32_t fitting_samples(const DeviceSpeed& device, Duration time, std::uint32_t current) {
  if (device.sample_seconds <= 0) {
    return current;
  }
  const double least = probe_samples(device.batch_size);
  const double share = std::clamp(to_seconds(time) / device.sample_seconds, least,
                                  static_cast<double>(device.batch_size));
  if (share >= device.batch_size) {
    return device.batch_size;
  }
  const double tolerance = std::max(same_samples, same_size * current);
  const bool stays = std::abs(share - current) <= tolerance;
  return stays ? current : static_cast<std::uint32_t>(share + rounding);
}

}  // namespace syncopate
