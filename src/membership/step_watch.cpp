#include "membership/step_watch.hpp"

#include <algorithm>
#include <cmath>

namespace syncopate {
namespace {

/// A worker's word, kept within what `Duration` can add up.
Duration bounded(double seconds) {
  constexpr double longest = 1e8;
  return std::isfinite(seconds) ? from_seconds(std::clamp(seconds, 0.0, longest))
                                : Duration::zero();
}

}  // namespace

StepWatch::StepWatch(const Options& options, TimePoint now)
    : options_(options), begun_(now), progressed_(now) {
  options_.wait_limit = std::max(options_.wait_limit, options_.heartbeat);
}

void StepWatch::heard(const wire::Heartbeat& heartbeat, TimePoint now) {
  const bool begins = heartbeat.computing() && (!computing_ || heartbeat.step() != step_);
  const bool ends = computing_ && !heartbeat.computing();
  if (begins || ends) {
    begun_ = now;
  }
  if (begins || heartbeat.progress() != progress_) {
    progressed_ = now;
  }
  computing_ = heartbeat.computing();
  step_ = heartbeat.step();
  progress_ = heartbeat.progress();
  expected_ = bounded(heartbeat.expected_seconds());
}

TimePoint StepWatch::due() const {
  if (!computing_) {
    return begun_ + options_.wait_limit;
  }
  if (expected_ == Duration::zero()) {
    return progressed_ + std::max(options_.wait_limit, options_.unknown_step);
  }
  const Duration likely = from_seconds(options_.factor * to_seconds(expected_));
  return std::max(begun_ + std::max(options_.wait_limit, likely),
                  progressed_ + options_.wait_limit);
}

}  // namespace syncopate
