#include "runtime/waits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/interruption.hpp"

namespace syncopate {

AdaptiveLimit::AdaptiveLimit(Options options) : options_(options) {}

void AdaptiveLimit::observed(Duration duration) {
  recent_.push_back(duration);
  if (recent_.size() > options_.window) {
    recent_.pop_front();
  }
}

Duration AdaptiveLimit::median() const {
  if (recent_.empty()) {
    return Duration::zero();
  }
  std::vector<Duration> sorted(recent_.begin(), recent_.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

Duration AdaptiveLimit::limit() const {
  return std::max(options_.floor, from_seconds(options_.factor * to_seconds(median())));
}

RanksMissing error_of(const LongWait& wait, const std::function<std::string(Rank)>& name) {
  std::vector<std::string> ranks;
  std::transform(wait.ranks.begin(), wait.ranks.end(), std::back_inserter(ranks), name);
  const std::string awaited =
      ranks.empty() ? "" : fmt::format(" for rank {}", fmt::join(ranks, ", "));
  return {fmt::format("{}: waited {:.1f} s{}", wait.operation, to_seconds(wait.waited), awaited),
          wait};
}

Waits::Waits(Options options) : options_(options), recent_({.floor = options.limit}) {}

Duration Waits::limit() const {
  return std::max(recent_.limit(), allowed_);
}

namespace {

/// Returns false if the attempt does not succeed by `until`. A TimedOut before that is an error of
/// the job.
bool succeeds(const Waits::Attempt& attempt, TimePoint until, const Clock& clock) {
  try {
    attempt(until);
    return true;
  } catch (const TimedOut&) {
    if (clock.now() < until) {
      throw;
    }
    return false;
  }
}

}  // namespace

void Waits::run(const Clock& clock, const Attempt& attempt, const Awaited& awaited,
                const std::function<void()>& poll) const {
  const TimePoint begun = clock.now();
  TimePoint due = begun + (options_.arbiter ? options_.limit / 2 : limit());
  for (;;) {
    const TimePoint until = end_of_attempt(clock.now(), due, poll != nullptr);
    if (succeeds(attempt, until, clock)) {
      return;
    }
    if (poll) {
      poll();
    }
    if (clock.now() - begun >= interruption::every) {
      interruption::throw_if_requested();
    }
    if (options_.arbiter) {
      options_.arbiter->waits();
    }
    if (clock.now() < due) {
      continue;
    }
    const LongWait report = report_of(awaited, clock.now() - begun);
    if (!options_.arbiter) {
      throw error_of(report);
    }
    due = options_.arbiter->report_wait(report) + clock.now();
  }
}

TimePoint Waits::end_of_attempt(TimePoint now, TimePoint due, bool polls) const {
  if (polls) {
    return std::min(due, now + poll_every);
  }
  return options_.arbiter ? std::min(due, now + alive_every) : due;
}

LongWait Waits::report_of(const Awaited& awaited, Duration waited) const {
  return {.ranks = awaited.missing(),
          .operation = awaited.operation,
          .waited = waited,
          .usual = median(),
          .limit = limit(),
          .servers = awaited.servers};
}

}  // namespace syncopate
