#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.hpp"

namespace syncopate {

/// How a worker's batch is cut into mini-batches of one size. Where M does not divide the batch, as
/// many of them count for it as cover it.
struct BatchCut {
  std::uint32_t batch_size = 64;
  std::uint32_t mini_batches = 8;  ///< M, as asked for; fewer where they do not divide the batch

  std::uint32_t size() const { return (batch_size + mini_batches - 1) / mini_batches; }
  std::uint32_t count() const { return (batch_size + size() - 1) / size(); }
};

/// What makes a worker signal the end of a round.
enum class SignalRule {
  contribution,  ///< its mini-batches since its last contribution amount to a batch
  batch,         ///< the batch in hand ends, a part of which may have entered rounds before
};

/// What one worker books of NBSSGD (He 2021): which mini-batch enters which round, and when a round's
/// contribution is due. A pure state machine.
///
/// Every mini-batch is booked to the open round. The worker's contribution to it is due when its own
/// signal rule holds, or when another worker has signalled; never before the allreduce of the last
/// round is complete. A contribution opens the next round.
///
/// Invariant: each mini-batch enters one round. Its staleness is the number of rounds between the one
///            whose model it was computed at and the one before its own.
/// Liveness:  a worker that computes finishes a batch sooner or later, and its signal makes the
///            contributions of all others due.
/// Thread:    one at a time.
class RoundTracker {
 public:
  /// `done` rounds came before.
  RoundTracker(const BatchCut& batch, Round done, SignalRule rule = SignalRule::contribution)
      : mini_batches_(batch.count()), rule_(rule), open_{done.value + 1} {}

  /// A mini-batch was computed at the model that round `read` left.
  void finished_mini_batch(Round read);
  /// Another worker has signalled the end of `round`. Signals of rounds past change nothing.
  void on_signal(Round round);
  /// The next contribution is due at once: as if a batch were finished.
  void force_due() { forced_due_ = true; }

  bool due() const { return reduced_ && (signalled() || own_rule_holds()); }
  /// Whether the others learn from this worker that the open round ends: none has told it so.
  bool must_signal() const { return !signalled(); }

  /// Mini-batches of the open round.
  std::uint64_t pending() const { return read_.size(); }

  struct Contribution {
    Round round{};
    std::vector<std::uint64_t> staleness;  ///< of each mini-batch, in rounds
  };
  /// Hands in what is booked, which may be nothing, and opens the next round: the one after the latest
  /// that this worker knows of. (Where all contribute to every round, that is the open one.)
  /// Errors: InternalError, while the allreduce of the last contribution is not complete.
  Contribution contribute();
  /// The allreduce of the last contribution is complete.
  void reduced() { reduced_ = true; }

  /// To which mini-batches are booked.
  Round open() const { return open_; }

 private:
  bool signalled() const { return signalled_ >= open_; }
  bool own_rule_holds() const;

  std::uint32_t mini_batches_;
  SignalRule rule_;
  Round open_;
  bool reduced_ = true;
  Round signalled_{};           ///< the latest that a signal was of
  std::vector<Round> read_;     ///< of each mini-batch of the open round
  std::uint32_t of_batch_ = 0;  ///< mini-batches done of the batch in hand
  bool batch_finished_ = false;
  bool forced_due_ = false;
};

/// When a worker of NBSSGD stops computing until a round ends. A pure state machine, which comes to the
/// same rounds on every worker.
///
/// A round is *drained* where every worker, once its contribution is due, computes no further until the
/// round's result is applied: all replicas are then alike, and nothing is booked. With a barrier every
/// round is. With overlap those are after which a checkpoint is written, and the last of a job.
///
/// A checkpoint that was requested in a round is pending from then on. A worker whose mini-batch spans
/// whole rounds (it contributed none to the last) then pauses after the one that it is in, and ends the
/// open round. Once every worker is ready, that is paused, or contributed a mini-batch, the next round
/// is drained; a worker that has paused already ends it at once. So a fast worker waits for mini-batches
/// of those that finish one within a round, and not for slower ones.
///
/// Liveness: where a worker computes it signals some time; where the last of them pauses it ends a round
///           in which all are ready, and then the drained one.
/// Thread:   one at a time.
class RoundDrain {
 public:
  /// `book` is the worker's, and outlives this.
  RoundDrain(RoundTracker& tracker, bool every_round)
      : tracker_(tracker), every_round_(every_round) {}

  /// Whether what the book has due may be contributed now.
  bool may_contribute() const { return tracker_.due() && (!drains() || paused_); }
  /// Before what is booked is contributed. Returns whether this worker is ready.
  bool contributes();
  /// What all workers know of a round whose allreduce is complete.
  struct Agreed {
    bool checkpoint = false;  ///< is requested, by any worker
    bool all_ready = false;
    bool next_is_last = false;
  };
  /// The allreduce of the last contribution is complete. Returns whether this is the moment to write a
  /// checkpoint.
  bool reduced(const Agreed& agreed);

  /// Asked after each mini-batch, and after each result: whether this worker computes no other until a
  /// drained round has ended. With a barrier it has a mini-batch in each round.
  bool pauses();
  bool paused() const { return paused_; }
  /// This worker computes no more, and ends each round at once.
  void stop();
  /// Whether the open round is drained.
  bool drains() const { return every_round_ || drains_; }

 private:
  RoundTracker& tracker_;
  bool every_round_;
  bool pending_ = false;
  bool drains_ = false;
  bool paused_ = false;
  bool stopped_ = false;
  bool spans_rounds_ = false;  ///< the mini-batch in hand
};

}  // namespace syncopate
