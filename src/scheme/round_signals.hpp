#pragma once

#include "collective/group.hpp"

namespace syncopate {

/// Signals between workers that a round ends. A worker polls for them between mini-batches.
///
/// Order:  none between workers: a signal may belong to a round that has already ended.
/// Thread: one thread broadcasts, one polls or waits; collectives of the group may run meanwhile.
class RoundSignals {
 public:
  /// `group` outlives this.
  explicit RoundSignals(Group& group) : group_(group) {}

  /// Signals the end of `round` to all other workers. Does not block.
  void broadcast(Round round);
  /// The latest round that was signalled since the last call; round 0 without a signal. Does not
  /// block. A failed worker is no error here: the next collective reports it.
  /// Errors: ProtocolError; the error that cancelled the world.
  Round poll();
  /// Waits for a signal until the deadline, and returns the latest round that was signalled.
  /// Errors: as `poll`.
  Round wait(TimePoint deadline);

 private:
  Group& group_;
};

}  // namespace syncopate
