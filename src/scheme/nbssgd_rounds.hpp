#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.hpp"
#include "runtime/world.hpp"
#include "scheme/averaging.hpp"
#include "scheme/round_tracker.hpp"
#include "scheme/scheme.hpp"
#include "transport/shared_memory.hpp"

namespace syncopate {

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
  /// last round taken.
  void add(std::span<const float> gradient, const GradientSet& tensors, const StepFacts& facts);

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
