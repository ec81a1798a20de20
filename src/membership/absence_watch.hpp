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
  /// Turns of the loop begin at most `usual` apart; a much longer gap is an absence.
  explicit AbsenceWatch(Duration usual) : usual_(usual) {}

  /// Call this when a turn begins. Returns the time since the previous turn if it was an absence,
  /// else zero.
  Duration turn(TimePoint now) {
    const Duration since = now - last_.value_or(now);
    last_ = now;
    return since > usual_ + tolerance ? since : Duration::zero();
  }

 private:
  /// Time that a busy machine, or the work of one turn, may take.
  static constexpr Duration tolerance = std::chrono::seconds(1);

  Duration usual_;
  std::optional<TimePoint> last_;
};

}  // namespace syncopate
