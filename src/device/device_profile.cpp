#include "device/device_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/errors.hpp"
#include "base/random.hpp"

namespace syncopate {
namespace {

/// At most thirty years, so that the sum of a few durations fits into `Duration`.
Duration bounded(double seconds) {
  constexpr double longest = 1e9;
  return from_seconds(std::min(seconds, longest));
}

Duration scaled(Duration duration, double factor) {
  return bounded(to_seconds(duration) * factor);
}

}  // namespace

double DeviceProfile::samples_per_second() const {
  return batch_samples / to_seconds(batch_time);
}

double DeviceProfile::step_seconds(std::uint32_t samples) const {
  const double overhead = samples > 0 ? to_seconds(step_overhead) : 0;
  return overhead + samples * to_seconds(batch_time - step_overhead) / batch_samples;
}

DevicePacer::DevicePacer(Options options) : options_(std::move(options)), pauses_{} {
  if (!(options_.time_scale > 0) || !std::isfinite(options_.time_scale)) {
    throw ConfigError(
        fmt::format("--time-scale {}: expected a number above 0", options_.time_scale));
  }
  if (!options_.pauses) {
    return;
  }
  pauses_ = {scaled(options_.pauses->every, options_.time_scale),
             scaled(options_.pauses->lasting, options_.time_scale)};
  if (pauses_.lasting >= pauses_.every) {
    throw ConfigError(fmt::format("outages of {} s every {} s: expected them to be shorter",
                                  to_seconds(pauses_.lasting), to_seconds(pauses_.every)));
  }
}

Duration DevicePacer::mean_step_time(std::uint32_t samples) const {
  return bounded(options_.profile.step_seconds(samples) * options_.time_scale);
}

Duration DevicePacer::end_of_step(Step step, std::uint32_t samples, Duration start) const {
  return end_of_work(start, scaled(mean_step_time(samples), jitter_factor(step)));
}

Duration DevicePacer::begin_after(const Ended& step, Duration now) const {
  const Duration since = std::max(Duration::zero(), now - step.ended);
  return std::max(step.ended + std::min(step.held_up, since), now - mean_step_time(step.samples));
}

double DevicePacer::jitter_factor(Step step) const {
  const double jitter = options_.profile.jitter;
  if (jitter == 0) {
    return 1;
  }
  auto random = Random(options_.seed).fork("jitter", options_.rank.value).fork("step", step.value);
  const double variance = std::log1p(jitter * jitter);
  return std::exp(std::sqrt(variance) * random.normal() - variance / 2);
}

bool DevicePacer::is_hit(std::uint64_t outage) const {
  return Random(options_.seed).fork("outage", outage).below(options_.devices) ==
         options_.rank.value;
}

Duration DevicePacer::end_of_work(Duration start, Duration work) const {
  if (pauses_.every == Duration::zero()) {
    return start + work;
  }
  Duration end = start + work;
  // The first outage that can matter is the last to begin by `start`; there is none at 0.
  auto outage = std::max<std::int64_t>(1, start / pauses_.every);
  Duration begin = pauses_.every * outage;
  for (; begin <= start || begin < end; begin += pauses_.every, ++outage) {
    const Duration overlap = begin + pauses_.lasting - std::max(begin, start);
    if (overlap > Duration::zero() && is_hit(static_cast<std::uint64_t>(outage))) {
      end += overlap;
    }
  }
  return end;
}

}  // namespace syncopate
