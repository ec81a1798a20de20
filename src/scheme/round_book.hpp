#pragma once

#include <cstdint>

#include "base/ids.hpp"

namespace syncopate {

/// How a worker's batch is cut into mini-batches of one size. Where M does not divide the batch, as
/// many of them count for it as cover it.
struct BatchCut {
  std::uint32_t batch_size = 64;
  std::uint32_t mini_batches = 8;  ///< M, as wished; fewer where they do not divide the batch

  std::uint32_t size() const { return (batch_size + mini_batches - 1) / mini_batches; }
  std::uint32_t count() const { return (batch_size + size() - 1) / size(); }
};

/// What one worker books of NBSSGD (He 2021): which mini-batch enters which round, and when a round's
/// contribution is due. A pure state machine.
///
/// Every mini-batch is booked to the open round. The round's contribution is due when the worker has
/// finished a batch since its last one, or another worker signals that it has; never before a
/// mini-batch is booked, nor before the sum of the round before is applied. After it the next round is
/// open, and the batch goes on where it was.
///
/// Invariants: a mini-batch is in one round. Staleness: between its computation and its application
///             at most one other update of the model is applied (none where the worker waits for each
///             sum).
/// Liveness:   a worker that computes finishes its batch sooner or later; so a contribution becomes
///             due, and with its signal those of all others after the mini-batch that each is in.
/// Thread:     one at a time.
class RoundBook {
 public:
  /// `done` rounds came before.
  RoundBook(const BatchCut& batch, Round done)
      : mini_batches_(batch.count()), open_{done.value + 1} {}

  /// A mini-batch was computed at the parameters that the replica has. Returns its staleness.
  std::uint64_t finished_mini_batch();
  /// Another worker has finished a batch in `round`. Signals of rounds past change nothing.
  void heard(Round round);
  /// Nothing is to be waited for any more: as if a batch were finished.
  void hurry() { batch_finished_ = true; }

  bool due() const;
  /// Whether the others learn from this worker that the open round ends: it has not heard so itself.
  bool signals() const { return !signalled(); }

  struct Contribution {
    Round round{};
    std::uint64_t mini_batches = 0;
  };
  /// Hands in what is booked, due or not, and opens the next round: the one after the latest that this
  /// worker knows of. (Where all meet in every round, that is the open one.)
  /// Errors: InternalError, where the sum of the round before is not applied.
  Contribution contribute();
  /// The sum of the last contribution is in the replica's parameters.
  void applied() { last_applied_ = true; }

  /// To which mini-batches are booked.
  Round open() const { return open_; }

 private:
  bool signalled() const { return signalled_ >= open_; }

  std::uint32_t mini_batches_;
  Round open_;
  bool last_applied_ = true;    ///< the sum of the round before the open one
  Round signalled_{};           ///< the latest that a signal was of
  std::uint64_t booked_ = 0;    ///< mini-batches of the open round
  std::uint32_t of_batch_ = 0;  ///< mini-batches done of the batch in hand
  bool batch_finished_ = false;
};

}  // namespace syncopate
