#pragma once

#include <algorithm>
#include <chrono>

#include "base/awake_clock.hpp"
#include "base/interruption.hpp"
#include "base/time.hpp"

namespace syncopate {

/// The clock of this process: `std::chrono::steady_clock` without the time for which the process
/// was suspended. One clock serves all nodes of the process, because a suspension stops all of
/// them. `RealWorld` calls it regularly, so that it notices suspensions.
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

/// The same time axis, as a clock for waits of the standard library and of Asio. Both read it again
/// before they report that a deadline has passed.
struct SteadyTime {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<SteadyTime>;
  static constexpr bool is_steady = true;

  static time_point now() { return time_point(process_clock().now()); }
};

/// Converts a deadline for waits of the standard library. `no_deadline` becomes a moment some years
/// before the greatest one, because the library adds the time of suspensions to it.
inline SteadyTime::time_point to_steady(TimePoint when) {
  constexpr Duration suspensions = std::chrono::hours(24 * 365 * 10);
  return SteadyTime::time_point(
      std::min(when.time_since_epoch(), no_deadline.time_since_epoch() - suspensions));
}

/// When a wait until `deadline` wakes up to ask whether it is interrupted (`interruption`): only in
/// a thread whose waits may be.
inline TimePoint end_of_slice(TimePoint deadline) {
  return interruption::is_asked() ? std::min(deadline, steady_now() + interruption::every)
                                  : deadline;
}

}  // namespace syncopate
