#include "pacer/round_plan.hpp"

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
/// A step that ends a hundredth of itself late ends in time: estimates are no better than that.
constexpr int in_time = 100;
/// A round has at most this many whole steps, unless these are mini-batches.
constexpr double whole_steps_in_a_round = 2;

double probe_seconds(const DeviceSpeed& device) {
  return device.sample_seconds * device.least_step();
}

}  // namespace

void divide_global_batch(std::vector<DeviceSpeed>& devices, std::uint32_t global_batch) {
  const auto is_unknown = [](const DeviceSpeed& device) { return device.sample_seconds <= 0; };
  if (std::ranges::any_of(devices, is_unknown)) {
    return;
  }
  double speed = 0;
  for (const DeviceSpeed& device : devices) {
    speed += 1 / device.sample_seconds;
  }
  for (DeviceSpeed& device : devices) {
    const double part = std::round(global_batch / (device.sample_seconds * speed));
    const double least = std::min(device.batch_size, std::max(device.least_part, 2U));
    const double most = device.batch_size;
    device.part = static_cast<std::uint32_t>(std::clamp(part, least, most));
  }
}

Duration shortest_round(std::span<const DeviceSpeed> devices, Duration synchronization, bool waits,
                        std::uint32_t longest_period) {
  double fastest = std::numeric_limits<double>::infinity();
  double probe = 0;
  for (const DeviceSpeed& device : devices) {
    fastest = std::min(fastest, device.sample_seconds * device.least_whole());
    probe = std::max(probe, probe_seconds(device) / longest_period);
  }
  const double computing = devices.empty() ? 0 : std::max(fastest, probe);
  const double waiting = waits ? to_seconds(synchronization) : 0;
  return from_seconds(
      std::max(to_seconds(synchronization) / communication_share, waiting + computing));
}

std::uint32_t period_of(const DeviceSpeed& device, Duration round_time, std::uint32_t current,
                        std::uint32_t longest) {
  const double rounds = probe_seconds(device) / to_seconds(round_time);
  const bool stays =
      rounds <= current * (1 + steady) && (current == 1 || rounds > 0.5 * current * (1 - steady));
  if (stays) {
    return current;
  }
  std::uint32_t period = 1;
  while (period < longest && period < rounds) {
    period *= 2;
  }
  return period;
}

Duration smoothed_round_time(Duration current, Duration wanted) {
  const Duration way = wanted - current;
  const bool stays = std::abs(to_seconds(way)) <= steady * to_seconds(current);
  return stays ? current : current + std::min(way / 2, current);
}

std::uint32_t fitting_samples(const DeviceSpeed& device, Duration time, std::uint32_t current) {
  if (device.sample_seconds <= 0) {
    return current;
  }
  const double batch = device.batch_size;
  const double least = device.least_step();
  const double part = device.part;
  const double fitting = to_seconds(time) / device.sample_seconds;
  const bool whole = part > 0 && fitting >= part;
  const double share = whole ? std::clamp(fitting / whole_steps_in_a_round, part, batch)
                             : std::clamp(fitting, least, batch);
  if (share >= batch) {
    return device.batch_size;
  }
  const double tolerance = std::max(same_samples, same_size * current);
  const bool stays = std::abs(share - current) <= tolerance;
  return stays ? current : static_cast<std::uint32_t>(share + rounding);
}

RoundPlan::RoundPlan(const Options& options) : options_(options), round_time_(options.round_time) {}

void RoundPlan::observe_synchronization(std::uint64_t reported_in, Duration time) {
  const bool outlier = synchronizations_.is_outlier(1, time);
  if (outlier && stalled_ && reported_in <= *stalled_ + 1) {
    return;
  }
  stalled_ = outlier ? std::optional(reported_in) : std::nullopt;
  synchronizations_.observe(1, time);
}

Duration RoundPlan::waiting_time() const {
  return options_.overlap ? Duration::zero() : synchronization_time();
}

Duration RoundPlan::wanted_round_time(std::span<const DeviceSpeed> devices) const {
  return shortest_round(devices, synchronization_time(), !options_.overlap,
                        options_.longest_period);
}

Duration RoundPlan::computing_time(std::span<const DeviceSpeed> devices,
                                   std::uint32_t period) const {
  return period * (round_time_ ? *round_time_ : wanted_round_time(devices)) - waiting_time();
}

std::uint32_t RoundPlan::period_of(const DeviceSpeed& device, std::uint32_t current) const {
  return round_time_ && device.sample_seconds > 0
             ? syncopate::period_of(device, *round_time_, current, options_.longest_period)
             : current;
}

void RoundPlan::plan(std::span<const DeviceSpeed> devices, TimePoint now) {
  if (!options_.round_time) {
    begin_with_synchronization();
    const Duration wanted = wanted_round_time(devices);
    round_time_ = round_time_ ? smoothed_round_time(*round_time_, wanted) : wanted;
  }
  end_ = base_.value_or(now) + *round_time_;
}

/// Rounds begin with the length of a step, which over a slow link is far less than that of a
/// synchronization: they would have doubled many times, each one held up by the synchronization
/// before. None is shorter than what goes on meanwhile.
void RoundPlan::begin_with_synchronization() {
  const bool first = round_time_ && synchronizations_.known() && !knew_synchronization_;
  if (first && options_.overlap) {
    round_time_ = std::max(*round_time_, synchronization_time());
  }
  knew_synchronization_ |= synchronizations_.known();
}

void RoundPlan::open_next(TimePoint now) {
  base_ = std::max(end_.value_or(now), now);
  end_.reset();
}

void RoundPlan::restart() {
  base_.reset();
  end_.reset();
}

bool RoundPlan::ends_round(TimePoint end, Duration step) const {
  const TimePoint next = end + step;
  return options_.overlap ? end - *end_ >= *end_ - next : next > *end_ + step / in_time;
}

bool RoundPlan::ends_rounds(TimePoint end, Duration step, std::uint64_t rounds_ahead) const {
  const TimePoint due = *end_ + round_time_.value_or(Duration::zero()) * rounds_ahead;
  return end + step > due + step / in_time;
}

void RoundPlan::load(const PaceEstimate::State& synchronizations, Duration round_time) {
  synchronizations_.load(synchronizations);
  if (round_time > Duration::zero() && !options_.round_time) {
    round_time_ = round_time;
  }
}

}  // namespace syncopate
