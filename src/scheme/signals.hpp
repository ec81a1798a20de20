#pragma once

#include "collective/group.hpp"

namespace syncopate {

/// Short words between workers that a round ends, looked for between mini-batches.
///
/// Order:  none is promised between workers: a signal may be of a round that is past.
/// Thread: one tells, one hears; collectives of the group may go on meanwhile.
class RoundSignals {
 public:
  /// `group` outlives this.
  explicit RoundSignals(Group& group) : group_(group) {}

  /// Tells all others, and does not wait for anything.
  void broadcast(Round round);
  /// The latest round of which a signal has come since this was last asked; round 0 where none has.
  /// Does not wait. The loss of a worker is no error here: it shows where something is awaited of it.
  /// Errors: ProtocolError; what the world was cancelled with.
  Round poll();
  /// Waits for a signal until the deadline, and returns the latest round of which one has come.
  /// Errors: as `heard`.
  Round wait(TimePoint deadline);

 private:
  Group& group_;
};

}  // namespace syncopate
