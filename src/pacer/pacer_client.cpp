#include "pacer/pacer_client.hpp"

#include <algorithm>
#include <cmath>

namespace syncopate {

std::string_view words_for(PaceReason reason) {
  switch (reason) {
    case PaceReason::first_round: return "first round";
    case PaceReason::slowest: return "slowest";
    case PaceReason::with_the_slowest: return "with the slowest";
    case PaceReason::no_time_for_another: return "no time for another step";
    case PaceReason::job_ends: return "the job ends";
    case PaceReason::all_wait: return "all workers wait";
    case PaceReason::resized: return "resized";
  }
  return "unknown";
}

FirstPace first_pace(PaceRule rule, std::uint32_t batch_size, std::uint32_t least_part) {
  if (rule == PaceRule::paper) {
    return {.step_samples = batch_size, .sync_after = 1};
  }
  return {.step_samples = least_part > 0 ? std::min(batch_size, std::max(least_part, 2U))
                                         : probe_samples(batch_size),
          .sync_after = std::nullopt};
}

std::vector<double> speed_shares(const PacerState& state) {
  std::vector<double> speeds;
  double all = 0;
  for (const PacerState::Worker& worker : state.workers) {
    if (worker.present && worker.sample_seconds <= 0) {
      return {};
    }
    speeds.push_back(worker.present ? 1 / worker.sample_seconds : 0);
    all += speeds.back();
  }
  for (double& speed : speeds) {
    speed /= all;
  }
  return all > 0 ? speeds : std::vector<double>();
}

std::uint32_t adopted_period(std::uint64_t round, std::uint64_t first, std::uint32_t wanted) {
  std::uint32_t period = 1;
  while (period <= wanted / 2 && (round - first) % (2 * std::uint64_t{period}) == 0) {
    period *= 2;
  }
  return period;
}

std::uint32_t probe_samples(std::uint32_t batch_size) {
  return std::max(batch_size / 16, std::min(batch_size, 2U));
}

/// With the time a + c b of b samples, (a + c b) / b is at most (a + c whole) / (0.9 whole).
std::uint32_t efficient_samples(const TimedPass& few, const TimedPass& more, std::uint32_t whole) {
  constexpr double as_fast = 0.9;
  if (few.samples >= more.samples) {
    return whole;
  }
  const double grown = std::max(0.0, more.seconds - few.seconds);
  const double each = std::min(grown / (more.samples - few.samples), few.seconds / few.samples);
  const double constant = few.seconds - each * few.samples;
  const double allowed = (constant / whole + each) / as_fast - each;
  const double least = allowed > 0 ? std::ceil(constant / allowed) : whole;
  return static_cast<std::uint32_t>(std::clamp(least, 1.0, static_cast<double>(whole)));
}

}  // namespace syncopate
