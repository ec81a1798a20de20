#pragma once

#include <chrono>
#include <optional>

#include "base/time.hpp"

namespace syncopate {

/// Notices that a loop did not run: a disk or a debugger held it, or its process was suspended. A
/// pure state machine.
///
/// A loop that judges the silence of others must not count the time in which it did not listen.
class AbsenceWatch {
 public:
  /// A turn of the loop begins at the latest after `usual`; a much longer time is an absence.
  explicit AbsenceWatch(Duration usual) : usual_(usual) {}

  /// A turn begins. Returns the time since the turn before where this was an absence, else zero.
  Duration turn(TimePoint now) {
    const Duration since = now - last_.value_or(now);
    last_ = now;
    return since > usual_ + tolerance ? since : Duration::zero();
  }

 private:
  /// What a busy machine, or the work of one turn, may take.
  static constexpr Duration tolerance = std::chrono::seconds(1);

  Duration usual_;
  std::optional<TimePoint> last_;
};

}  // namespace syncopate
