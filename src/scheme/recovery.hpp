#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "collective/group.hpp"
#include "runtime/adaptive_limit.hpp"
#include "scheme/scheme.hpp"

namespace syncopate {

/// What a worker brings to a meeting. All are replaced by the mean over all workers.
struct SyncValues {
  std::span<float> model;    ///< as long as the parameters
  std::span<float> buffers;  ///< always by an allreduce: they are few, and no server keeps them
  /// Control variates, as long as the parameters, or empty; always by an allreduce, uncompressed.
  std::span<float> control = {};
};

/// How the meetings of a group go on when members are lost in the middle of them.
///
/// A meeting that breaks may have ended well for some. So those who are left first *settle*, as a new
/// generation of the group, which round each of them wants to hold: r where it broke, r + 1 where it had
/// ended. More than one apart they cannot be, for the step infos of r + 1 come from those who have r behind
/// them. Whoever ended r has a sum with everybody's part in it, that of the lost one, too; the lowest
/// of them hands it over to those who want r. If nobody has it, all hold r again, and what the lost one
/// had done since r − 1 is lost with it. A further loss begins the settlement anew.
///
/// Those who ended r come to the settlement with their next meeting: a round later, in which they
/// train. So waits of the group may take as long as rounds do.
///
/// Invariant: a result is the same, bit for bit, on all who are left, and each gets one of each round.
/// Thread:    one at a time.
class Recovery {
 public:
  /// `group` knows its losses, and outlives this.
  explicit Recovery(Group& group);

  /// Runs what needs the group, once. False: it broke since somebody was lost; now there is a new group.
  /// Errors: those of `work`, where no loss explains it before the deadline; what ended the job.
  bool run_or_regroup(const std::function<void()>& work);

  /// Before a meeting: keeps a copy of what this worker brings.
  void begin(Round round, const SyncValues& values);
  /// Before each attempt at it. Returns the meeting of the round, if that has ended well
  /// elsewhere; `values` are then its result. Else they are what was brought.
  /// Errors: PeerLost, RanksMissing, TimedOut, ViewChanged.
  std::optional<SyncRound> agree(const SyncValues& values);
  /// The meeting has ended well, with this result.
  void keep(const SyncRound& sync_round, const SyncValues& values);

  /// Between two meetings: where somebody was lost since the last one, settles that for those for whom it
  /// broke. Errors: as `survives`.
  void agree_after_failures();

  /// After the last meeting: stays for as long as somebody may want its result.
  /// Errors: what ended the job.
  void linger();

 private:
  struct Copies {
    std::vector<float> model;
    std::vector<float> buffers;
    std::vector<float> control;
  };

  static void copy(const SyncValues& from, Copies& to);
  static void copy(const Copies& from, const SyncValues& to);
  std::vector<Round> gather_wanted_rounds();
  void send_result(NodeId to);
  SyncRound receive_result(Rank from, const SyncValues& values);
  void await_regroup(const std::exception_ptr& error);

  Group& group_;
  FailureListener& failures_;
  Round wanted_{};                       ///< the round under way, or the next
  std::uint32_t agreed_generation_ = 0;  ///< the last generation that agreed
  Copies contributed_;                   ///< to the round under way
  Copies result_;                        ///< the result of the round before
  SyncRound result_round_{};             ///< likewise
  std::optional<TimePoint> ended_;       ///< the last meeting
  AdaptiveLimit rounds_;
};

}  // namespace syncopate
