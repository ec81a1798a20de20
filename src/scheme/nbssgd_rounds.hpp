#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/world.hpp"
#include "scheme/averaging.hpp"
#include "scheme/gradient_sum.hpp"
#include "scheme/round_book.hpp"
#include "scheme/scheme.hpp"
#include "scheme/signals.hpp"
#include "transport/shared_memory.hpp"

namespace syncopate {

/// What a worker contributes to a round of NBSSGD, and what the round makes of it.
struct NbssgdRound {
  explicit NbssgdRound(SharedMemory* memory) : gradient(memory) {}

  StepInfo info{};                         ///< this worker's
  std::vector<std::uint64_t> staleness{};  ///< of each of its mini-batches, in rounds
  SharedValues gradient;                   ///< g_i; after the allreduce Σ n_i g_i / N
  std::vector<float> brought_buffers{};    ///< of the replica, as they were contributed
  std::vector<float> buffers{};            ///< likewise; after the allreduce their mean
  Meeting meeting{};                       ///< the round, and what followed from it
  Duration communicated{};
};

/// Rounds of NBSSGD, which take place in a task of their own while their worker computes.
///
/// The worker books each mini-batch when it is finished. The task contributes what is booked, or
/// nothing, as soon as the round book says so, and queues the round's result, which the worker applies
/// between two mini-batches. So no round waits for a backward pass, unless it is drained
/// (`RoundDrain`), or unless the results that a worker has not applied fill their memory.
///
/// The last round of a job is drained, so that nothing is left after it: with a barrier it is the round in
/// which a worker wants to stop, with overlap the one after. Its meeting alone says stop.
///
/// Threads: one calls. It shares book, sum and queue with the task, and with one that receives
///          signals, under a mutex that is held for one addition to the sum at most.
/// Errors:  those of `Averaging::meet` and `Signals::await`, thrown by `take`.
class NbssgdRounds {
 public:
  struct Options {
    BatchCut batch{};
    Round done{};  ///< rounds that came before
    SignalRule signal = SignalRule::contribution;
    bool barrier = false;  ///< drains every round
    std::size_t params = 0;
    std::vector<float> buffers{};                    ///< the replica's, as it begins
    std::size_t queue_bytes = std::size_t{1} << 28;  ///< of results; there is room for two at least
  };

  /// `group` and `averaging` outlive this.
  NbssgdRounds(Group& group, Averaging& averaging, const Options& options);
  /// A round that is under way ends as all others come to it.
  ~NbssgdRounds();
  NbssgdRounds(const NbssgdRounds&) = delete;
  NbssgdRounds& operator=(const NbssgdRounds&) = delete;

  /// A mini-batch with mean gradient `gradient`, computed at the model that the last taken round left.
  void book(std::span<const float> gradient, const StepFacts& facts);

  using Results = std::deque<std::unique_ptr<NbssgdRound>>;

  /// The results that have come since, in order, up to one after which a checkpoint is written. Makes
  /// the replica's `buffers` what they are after these rounds: they keep what they have gained since
  /// they were contributed.
  Results take(std::span<float> buffers);
  /// Results that are applied: their memory serves other rounds.
  void give_back(Results results);

  /// Whether the worker computes nothing until it has taken another result.
  bool pauses();
  /// Waits for a result. Returns at once where none will come.
  void wait();

  /// The worker computes no more.
  void leave();
  /// Whether every result has been taken, and no error is left for `take`.
  bool ended();

 private:
  void receive_signals();
  void run() noexcept;
  void run_rounds();
  std::unique_ptr<NbssgdRound> await_contribution();
  bool may_contribute() const;
  std::unique_ptr<NbssgdRound> room_for_result();
  std::unique_ptr<NbssgdRound> contribute();
  bool conclude(std::unique_ptr<NbssgdRound> round, const Averaging::Result& result);

  Group& group_;
  Averaging& averaging_;
  Options options_;
  Signals signals_;
  std::size_t most_results_;

  std::mutex mutex_;  // guards all down to failure_
  RoundBook book_;
  RoundDrain drain_;
  GradientSum sum_;             ///< of the open round
  StepInfo info_;               ///< likewise
  std::uint64_t pending_ = 0;   ///< samples booked that are in no result that was taken
  std::vector<float> buffers_;  ///< the replica's, after its last mini-batch and the last round
  Round taken_;                 ///< the last that the worker has taken
  Results finished_;            ///< not taken
  Results free_;                ///< memory of results that were applied
  std::size_t in_use_ = 0;      ///< results that are not free
  bool last_ = false;           ///< the open round is the last
  bool ended_ = false;
  bool given_up_ = false;
  std::exception_ptr failure_;

  GradientSum departing_;                   ///< the task's own
  std::unique_ptr<Event> to_rounds_;        ///< a contribution may be due
  std::unique_ptr<Event> to_worker_;        ///< a result has come, or none will
  std::unique_ptr<Task> receives_signals_;  ///< null in a group of one
  std::unique_ptr<Task> rounds_;            ///< last: it ends before what it uses
};

}  // namespace syncopate
