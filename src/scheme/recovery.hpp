#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "collective/group.hpp"
#include "runtime/waits.hpp"
#include "scheme/round_reduction.hpp"
#include "scheme/scheme.hpp"

namespace syncopate {

/// Finishes the synchronization rounds of a group whose members may fail during a round.
///
/// A round r that breaks may be complete on some workers and not on others. The remaining workers
/// form a new generation of the group, and first agree which round each of them wants: r where the
/// round broke, r + 1 where it was complete. They cannot differ by more than one, since the step
/// infos of r + 1 come only from workers that have completed r; one that misses r wants a later
/// round, and has an earlier result (`RoundBook`). A worker that completed r has a
/// result with the contributions of all, including the failed worker's; of these workers the one
/// with the lowest rank sends the result to those that want r. If no worker has it, all run r
/// again, and the failed worker's steps since r − 1 are lost. After a further failure they agree
/// again.
///
/// Workers that completed r agree when they come to their next round, after training for a round.
/// So waits of the group may take as long as a round.
///
/// Invariant: a result has the same bits on all remaining workers, and each worker gets one result
///            per round.
/// Thread:    one at a time.
class Recovery {
 public:
  /// `group` listens for failures, and outlives this.
  /// `notes`: the bytes of the note that a result has.
  explicit Recovery(Group& group, std::size_t notes = 0);

  /// The result of a round, without its values.
  struct Finished {
    SyncRound sync_round;
    std::vector<std::byte> note;
  };

  /// Runs `work`, which uses the group, once. Returns false if it broke because a member failed;
  /// the next call runs in the group of the remaining workers.
  /// Errors: those of `work`, if no failed member is reported before the deadline; the error that
  ///         ended the job.
  bool run_or_regroup(const std::function<void()>& work);

  /// Called before a round: copies this worker's contribution. `tensors`: the number of tensors of
  /// its `GradientSet`.
  void begin(Round round, std::size_t tensors, const SyncValues& values);
  /// Called before each attempt at the round. Returns the round if another worker has completed it;
  /// `values` are then its result. Otherwise `values` are restored to the contribution.
  /// Errors: PeerLost, RanksMissing, TimedOut, ViewChanged.
  std::optional<Finished> agree(const SyncValues& values);
  /// Called when the round is complete: keeps a copy of its result `values`. `period`: this worker
  /// takes part next that many rounds later.
  void keep(const Finished& finished, const SyncValues& values, std::uint32_t period = 1);
  /// The limit of a wait for workers that train in a round.
  Duration limit() const { return rounds_.limit(); }

  /// Called between two rounds: after a failure, helps workers whose round broke to complete it.
  /// Errors: as `run_or_regroup`.
  void agree_after_failures();

  /// Called after the last round: waits as long as a worker may still need its result.
  /// Errors: the error that ended the job.
  void linger();

 private:
  struct Copies {
    std::vector<float> model;
    std::vector<float> buffers;
    std::vector<float> control;
  };

  /// What a worker sends to the others after a failure.
  struct Stand {
    Round wanted{};  ///< the round under way, or its next
    Round has{};     ///< the last round whose result it has
  };

  static void copy(const SyncValues& from, Copies& to);
  static void copy(const Copies& from, const SyncValues& to);
  std::vector<Stand> gather_stands();
  void send_result(NodeId to);
  Finished receive_result(Rank from, const SyncValues& values);
  void await_regroup(const std::exception_ptr& error);

  Group& group_;
  FailureListener& failures_;
  Round wanted_{};                       ///< the round under way, or the next
  std::size_t tensors_ = 0;              ///< of a `GradientSet`
  std::uint32_t agreed_generation_ = 0;  ///< the last generation that agreed
  Copies contributed_;                   ///< to the round under way
  Copies result_;                        ///< of the previous round
  Finished finished_{};                  ///< the previous round
  std::optional<TimePoint> ended_;       ///< the last round
  AdaptiveLimit rounds_;
};

}  // namespace syncopate
