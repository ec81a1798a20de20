#pragma once

#include <chrono>

#include "base/time.hpp"

namespace syncopate {

/// The time axis of the real world: nanoseconds of `std::chrono::steady_clock`. The transport and
/// the world of a node must agree on it, because deadlines pass from one to the other.
inline TimePoint steady_now() {
  return TimePoint(std::chrono::steady_clock::now().time_since_epoch());
}

/// The same moment, for what waits on the standard library's clock.
inline std::chrono::steady_clock::time_point to_steady(TimePoint when) {
  return std::chrono::steady_clock::time_point(when.time_since_epoch());
}

}  // namespace syncopate
