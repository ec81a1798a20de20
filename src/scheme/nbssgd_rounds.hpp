#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "base/mutex.hpp"
#include "collective/group.hpp"
#include "runtime/world.hpp"
#include "scheme/averaging.hpp"
#include "scheme/scheme.hpp"
#include "transport/shared_memory.hpp"

namespace syncopate {

/// How a worker's batch is divided into mini-batches of equal size. Where M does not divide the
/// batch, the batch counts as the number of mini-batches that cover it.
struct BatchCut {
  std::uint32_t batch_size = 64;
  std::uint32_t mini_batches = 8;  ///< M, as requested; fewer where M does not divide the batch

  // Both divisions round up. A sum of the two operands could overflow.
  std::uint32_t size() const { return (batch_size - 1) / mini_batches + 1; }
  std::uint32_t count() const { return (batch_size - 1) / size() + 1; }
};

/// The condition on which a worker signals the end of a round.
enum class SignalRule {
  contribution,  ///< its mini-batches since its last contribution amount to a batch
  batch,         ///< its current batch ends, parts of which may have entered earlier rounds
};

/// Accumulates Σ n_k g_k over mini-batches of n_k samples with mean gradients g_k.
class GradientAccumulator {
 public:
  /// All gradients have the same length.
  void add(std::span<const float> mean, std::uint32_t samples);
  /// Writes the accumulated gradient divided by `divisor`, which is positive; zeros when empty.
  void divided_into(std::span<float> into, double divisor) const;
  void clear();

  std::uint64_t samples() const { return samples_; }  ///< Σ n_k

 private:
  std::vector<float> sum_;  ///< empty before the first `add`
  std::uint64_t samples_ = 0;
};

/// Tracks which mini-batch of one worker enters which round of NBSSGD (He 2021), and when the
/// worker's contribution to a round is due. A pure state machine.
///
/// Every mini-batch belongs to the open round. The worker's contribution to that round is due when
/// its own signal rule holds, or when another worker has signalled, but never before the allreduce
/// of the previous round is complete. A contribution opens the next round.
///
/// Invariant: each mini-batch enters exactly one round. Its staleness is the number of rounds
///            between the round at whose model it was computed and the round before its own.
/// Liveness:  a worker that computes eventually finishes a batch, and its signal makes the
///            contributions of all others due.
/// Thread:    one at a time.
class RoundTracker {
 public:
  /// `done`: the number of rounds before this run.
  RoundTracker(const BatchCut& batch, Round done, SignalRule rule = SignalRule::contribution)
      : mini_batches_(batch.count()), rule_(rule), open_{done.value + 1} {}

  /// The worker finished a mini-batch at the model of round `read`.
  void finished_mini_batch(Round read);
  /// Another worker signalled the end of `round`. Signals of earlier rounds change nothing.
  void on_signal(Round round);
  /// Makes the next contribution due at once, as if a batch were finished.
  void force_due() { forced_due_ = true; }

  bool due() const { return reduced_ && (signalled() || own_rule_holds()); }
  /// True if no other worker has signalled the end of the open round, so this worker has to.
  bool must_signal() const { return !signalled(); }

  /// The number of mini-batches of the open round.
  std::uint64_t pending() const { return read_.size(); }

  struct Contribution {
    Round round{};
    std::vector<std::uint64_t> staleness;  ///< of each mini-batch, in rounds
  };
  /// Returns the mini-batches of the open round, possibly none, and opens the next round: the one
  /// after the latest round that this worker knows of. (Where every worker contributes to every
  /// round, that is the open round.)
  /// Errors: InternalError if the allreduce of the last contribution is not complete.
  Contribution contribute();
  /// The allreduce of the last contribution is complete.
  void reduced() { reduced_ = true; }

  /// The round to which mini-batches belong now.
  Round open() const { return open_; }

 private:
  bool signalled() const { return signalled_ >= open_; }
  bool own_rule_holds() const;

  std::uint32_t mini_batches_;
  SignalRule rule_;
  Round open_;
  bool reduced_ = true;
  Round signalled_{};           ///< the latest round that was signalled
  std::vector<Round> read_;     ///< of each mini-batch of the open round
  std::uint32_t of_batch_ = 0;  ///< finished mini-batches of the current batch
  bool batch_finished_ = false;
  bool forced_due_ = false;
};

/// Decides when a worker of NBSSGD stops computing until a round ends. A pure state machine, which
/// selects the same rounds on every worker.
///
/// A round is *drained* if every worker, once its contribution is due, stops computing until it has
/// applied the round's result: all replicas are then equal, and no mini-batch is pending. With a
/// barrier every round is drained. With overlap a round is drained if a checkpoint is written after
/// it, or if it is the last of the job.
///
/// A checkpoint that is requested in a round is pending from then on. A worker whose mini-batch
/// spans whole rounds (it contributed none to the last round) then pauses after that mini-batch,
/// and ends the open round. A worker is ready when it is paused or has contributed a mini-batch;
/// once all workers are ready, the next round is drained, and a worker that is already paused ends
/// it at once. So a fast worker waits for the mini-batches of workers that finish one within a
/// round, but not for slower ones.
///
/// Liveness: while a worker computes, it eventually signals. When the last worker pauses, it ends a
///           round in which all are ready, and then the drained round.
/// Thread:   one at a time.
class RoundDrain {
 public:
  /// `tracker` is the worker's, and outlives this.
  RoundDrain(RoundTracker& tracker, bool every_round)
      : tracker_(tracker), every_round_(every_round) {}

  /// True if the worker may make its due contribution now.
  bool may_contribute() const { return tracker_.due() && (!drains() || paused_); }
  /// Called before a contribution. Returns whether this worker is ready.
  bool contributes();
  /// The facts of a reduced round that all workers know.
  struct Agreed {
    bool checkpoint = false;  ///< any worker requested one
    bool all_ready = false;
    bool next_is_last = false;
  };
  /// The allreduce of the last contribution is complete. Returns true if a checkpoint is written
  /// now.
  bool reduced(const Agreed& agreed);

  /// Called after each mini-batch and after each result. True if this worker stops computing until
  /// a drained round has ended. With a barrier a worker contributes a mini-batch to each round.
  bool pauses();
  bool paused() const { return paused_; }
  /// Called when this worker stops computing: from now on it ends each round at once.
  void stop();
  /// True if the open round is drained.
  bool drains() const { return every_round_ || drains_; }

 private:
  RoundTracker& tracker_;
  bool every_round_;
  bool pending_ = false;
  bool drains_ = false;
  bool paused_ = false;
  bool stopped_ = false;
  bool spans_rounds_ = false;  ///< the current mini-batch
};

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
  std::optional<Message> next(TimePoint deadline);

  Group& group_;
  bool warned_ = false;  ///< of a node that is no worker
};

/// A worker's contribution to a round of NBSSGD, and then the round's result.
struct NbssgdRound {
  explicit NbssgdRound(SharedMemory* memory) : gradient(memory) {}

  StepInfo info{};                           ///< of this worker
  std::vector<std::uint64_t> staleness{};    ///< of each of its mini-batches, in rounds
  SharedValues gradient;                     ///< g_i; after the allreduce Σ n_i g_i / N
  std::vector<float> contributed_buffers{};  ///< the replica's buffers at the contribution
  std::vector<float> buffers{};              ///< the same; after the allreduce their mean
  SyncRound sync_round{};
  BackgroundExchange exchange{};
  Duration communicated{};
};

/// Runs the rounds of NBSSGD in a background task, while the worker computes.
///
/// The worker adds each mini-batch when it is finished. As soon as the round tracker says that the
/// worker's contribution is due, the task contributes the pending mini-batches, possibly none, and
/// reduces them with those of the other workers. It queues the result, which the worker applies
/// between two mini-batches. So no round waits for a backward pass, except where the round is
/// drained (`RoundDrain`), or where results that the worker has not applied fill the memory for
/// results.
///
/// The last round of a job is drained, so that no mini-batch is pending after it. With a barrier it
/// is the round in which a worker requests to stop; with overlap it is the next one. Only the last
/// round has `agreed.stop`.
///
/// Threads: one thread calls. It shares tracker, accumulator and queue with the task, and with a
///          second task that receives signals, under a mutex that is held for at most one addition
///          to the accumulator.
/// Errors:  those of `Averaging::synchronize` and `RoundSignals::wait`, thrown by `take`.
class NbssgdRounds {
 public:
  struct Options {
    BatchCut batch{};
    Round done{};  ///< rounds before this run
    SignalRule signal = SignalRule::contribution;
    bool barrier = false;  ///< drains every round
    std::size_t params = 0;
    std::size_t tensors = 0;                         ///< of a `GradientSet`
    std::vector<float> buffers{};                    ///< the replica's, at the beginning
    std::size_t queue_bytes = std::size_t{1} << 28;  ///< memory for results; room for at least two
  };

  /// `group` and `averaging` outlive this.
  NbssgdRounds(Group& group, Averaging& averaging, const Options& options);
  /// Waits for the end of a round that is under way, to which all other workers contribute as well.
  ~NbssgdRounds();
  NbssgdRounds(const NbssgdRounds&) = delete;
  NbssgdRounds& operator=(const NbssgdRounds&) = delete;

  /// Adds a mini-batch with mean gradient `gradient`, of `tensors`, computed at the model of the
  /// last round taken, and the replica's `buffers` after it. Both go into the same round, which may
  /// begin before the next `take`.
  void add(std::span<const float> gradient, const GradientSet& tensors,
           std::span<const float> buffers, const StepFacts& facts);

  using Results = std::deque<std::unique_ptr<NbssgdRound>>;

  /// The results since the last call, in order, up to the first with a checkpoint. Updates the
  /// replica's `buffers` by these rounds: the buffers keep their changes since they were
  /// contributed.
  Results take(std::span<float> buffers);
  /// Returns results that the worker has applied: other rounds reuse their memory.
  void release(Results results);

  /// True if the worker must not compute until it has taken another result.
  bool pauses();
  /// Waits for a result. Returns at once after the last one.
  void wait();

  /// Called when the worker stops computing.
  void leave();
  /// True if every result has been taken, and no error is left for `take` to throw.
  bool ended();

 private:
  void receive_signals();
  void run() noexcept;
  void run_rounds();
  std::unique_ptr<NbssgdRound> await_contribution();
  bool may_contribute() const REQUIRES(mutex_);
  StepInfo nothing() const { return {.gradients = GradientSet(options_.tensors, /*all=*/false)}; }
  std::unique_ptr<NbssgdRound> acquire_round();
  std::unique_ptr<NbssgdRound> contribute();
  bool finish_round(std::unique_ptr<NbssgdRound> round, const Averaging::Result& result);

  Group& group_;
  Averaging& averaging_;
  Options options_;
  RoundSignals signals_;
  std::size_t most_results_;

  Mutex mutex_;
  RoundTracker tracker_ GUARDED_BY(mutex_);
  RoundDrain drain_ GUARDED_BY(mutex_);
  GradientAccumulator accumulator_ GUARDED_BY(mutex_);  ///< of the open round
  StepInfo info_ GUARDED_BY(mutex_);                    ///< of the open round
  /// Samples that were added and are in no result taken so far.
  std::uint64_t pending_ GUARDED_BY(mutex_) = 0;
  /// The replica's buffers after its last mini-batch and the last round.
  std::vector<float> buffers_ GUARDED_BY(mutex_);
  Round taken_ GUARDED_BY(mutex_);             ///< the last round that the worker has taken
  Results finished_ GUARDED_BY(mutex_);        ///< not taken
  Results free_ GUARDED_BY(mutex_);            ///< memory of applied results
  std::size_t in_use_ GUARDED_BY(mutex_) = 0;  ///< results that are not free
  bool last_ GUARDED_BY(mutex_) = false;       ///< the open round is the last
  bool ended_ GUARDED_BY(mutex_) = false;
  bool abandoned_ GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ GUARDED_BY(mutex_);

  GradientAccumulator contribution_;        ///< owned by the task
  std::unique_ptr<Event> to_rounds_;        ///< a contribution may be due
  std::unique_ptr<Event> to_worker_;        ///< a result is queued, or the last round ended
  std::unique_ptr<Task> receives_signals_;  ///< null in a group of one
  std::unique_ptr<Task> rounds_;            ///< last: it ends before the objects that it uses
};

}  // namespace syncopate
