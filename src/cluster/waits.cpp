#include "cluster/waits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace syncopate {
namespace {

RanksMissing error_of(const wire::Missing& report) {
  const std::string whom =
      report.ranks().empty() ? "" : fmt::format(" for rank {}", fmt::join(report.ranks(), ", "));
  return {fmt::format("{}: waited {:.1f} s{}", report.operation(), report.waited_seconds(), whom),
          report};
}

}  // namespace

Waits::Waits(Options options) : options_(options), recent_({.floor = options.limit}) {}

Duration Waits::limit() const {
  return std::max(recent_.limit(), allowed_);
}

void Waits::run(const Clock& clock, const Attempt& attempt, const Awaited& awaited,
                const std::function<void()>& look_up) const {
  const TimePoint begun = clock.now();
  TimePoint due = begun + (options_.arbiter ? options_.limit / 2 : limit());
  for (;;) {
    try {
      attempt(look_up ? std::min(due, clock.now() + glance) : due);
      return;
    } catch (const TimedOut&) {
      if (look_up) {
        look_up();
      }
    }
    if (clock.now() < due) {
      continue;
    }
    const wire::Missing report = report_of(awaited, clock.now() - begun);
    if (!options_.arbiter) {
      throw error_of(report);
    }
    due = options_.arbiter->report_wait(report) + clock.now();
  }
}

wire::Missing Waits::report_of(const Awaited& awaited, Duration waited) const {
  wire::Missing report;
  for (const Rank rank : awaited.missing()) {
    report.add_ranks(rank.value);
  }
  report.set_operation(awaited.operation);
  report.set_waited_seconds(to_seconds(waited));
  report.set_usual_seconds(to_seconds(median()));
  report.set_limit_seconds(to_seconds(limit()));
  return report;
}

}  // namespace syncopate
