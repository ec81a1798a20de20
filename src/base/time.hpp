#pragma once

#include <chrono>

namespace syncopate {

using Duration = std::chrono::nanoseconds;

/// The time axis of a `World`: real or virtual, never the wall clock, never compared across nodes.
struct WorldTime {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<WorldTime>;
  static constexpr bool is_steady = true;
};

/// A moment of one node's time axis; also a deadline.
using TimePoint = WorldTime::time_point;

/// The deadline of an operation that something else ends, and that may take for ever.
inline constexpr TimePoint no_deadline = TimePoint::max();

/// A node's steady clock.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

constexpr double to_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// The longest duration that `from_seconds` gives: sums of two fit into `Duration`.
inline constexpr double longest_seconds = 4e9;

/// Converts any number: one out of range becomes the longest duration, and NaN becomes zero,
/// because a conversion that overflows is undefined.
constexpr Duration from_seconds(double seconds) {
  if (!(seconds >= -longest_seconds)) {
    seconds = seconds < 0 ? -longest_seconds : 0;  // 0: NaN
  } else if (seconds > longest_seconds) {
    seconds = longest_seconds;
  }
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace syncopate
