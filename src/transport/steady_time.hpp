#pragma once

#include <algorithm>
#include <chrono>

#include "base/awake_clock.hpp"
#include "base/time.hpp"

namespace syncopate {

/// The clock of this process: `std::chrono::steady_clock` without the time for which the process
/// was suspended. There is one, because a suspension stops every node of the process. `RealWorld`
/// keeps it beating.
inline AwakeClock& process_clock() {
  static AwakeClock clock(
      [] { return Duration(std::chrono::steady_clock::now().time_since_epoch()); },
      std::chrono::seconds(1));
  return clock;
}

/// The time axis of the real world. The transport and the world of a node must agree on it, because
/// deadlines pass from one to the other.
inline TimePoint steady_now() {
  return TimePoint(process_clock().now());
}

/// The same time axis, as a clock for waits of the standard library and of Asio. Both look at it
/// again before they report that a deadline has passed.
struct SteadyTime {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<SteadyTime>;
  static constexpr bool is_steady = true;

  static time_point now() { return time_point(process_clock().now()); }
};

/// The same moment, for what waits on the standard library's clock. No deadline becomes a moment
/// some years before the last one, because the library adds to it the time of suspensions.
inline SteadyTime::time_point to_steady(TimePoint when) {
  constexpr Duration suspensions = std::chrono::hours(24 * 365 * 10);
  return SteadyTime::time_point(
      std::min(when.time_since_epoch(), no_deadline.time_since_epoch() - suspensions));
}

}  // namespace syncopate
