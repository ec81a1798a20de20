#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace syncopate {

/// The rule by which the pacer decides when the workers of a round synchronize.
enum class PaceRule {
  paper,  ///< a round is one mini-batch of the slowest (ESync, Li et al. 2019, algorithm 2)
  timed,  ///< rounds have a length; a worker trains on the share of a mini-batch that fits
};

/// A worker's report after a local step. The worker measures the durations; it sends no time of its
/// clock.
struct StepReport {
  std::uint64_t round = 0;    ///< of the step; the first is 1
  std::uint64_t steps = 0;    ///< local steps in that round so far, this one included
  std::uint32_t samples = 0;  ///< of the step
  Duration took{};            ///< data, forward, backward, update
  bool synchronizes =
      false;  ///< the worker enters the round's synchronization, then the next round
  /// If it synchronizes: it does so next that many rounds later.
  std::uint32_t period = 1;
  Duration communicated{};  ///< in the last synchronization, without waiting; sent once, then 0
  /// The samples of all workers, from the start of this run; 0: the job does not end by samples.
  std::uint64_t samples_to_do = 0;
  bool ends = false;  ///< the worker wants the job to end, such as at a limit of time
  /// The worker has no samples: it waits for all others at a place of its program.
  bool waits = false;
};

/// The reason of a decision of the pacer.
enum class PaceReason {
  first_round,          ///< nothing is known of the worker: it synchronizes after its first step
  slowest,              ///< the others wait only for this worker
  with_the_slowest,     ///< the slowest has entered the synchronization
  no_time_for_another,  ///< another step would not end in time for the synchronization
  job_ends,             ///< the samples of the job are done, or a worker wants it to end
  all_wait,             ///< every worker waits for the others, without samples
  resized,              ///< the steps change their size; nothing is decided about synchronizing
};

/// The reason in words: "no time for another step".
std::string_view words_for(PaceReason reason);

/// A decision of the pacer for one worker.
struct Pace {
  Rank worker;
  std::uint64_t round = 0;
  /// The worker synchronizes once it has done that many local steps of `round`. A worker that has
  /// already done more synchronizes after its current step. Empty: not decided yet. A decision does
  /// not change within a round.
  std::optional<std::uint64_t> sync_after;
  std::uint32_t step_samples = 0;  ///< of the steps after the current one
  std::uint32_t period = 1;        ///< the worker is to synchronize in every round of that many
  std::uint32_t whole = 0;         ///< samples of the least whole step; 0: a mini-batch
  PaceReason reason = PaceReason::resized;
};
using Paces = std::vector<Pace>;

/// The pace of a worker until it receives another one. Worker and pacer both call `first_pace`, so
/// that no message can arrive too late for the first step.
struct FirstPace {
  std::uint32_t step_samples = 0;
  std::optional<std::uint64_t> sync_after;  ///< in the worker's first round
};

/// The pace at the beginning. Under `paper` steps are whole mini-batches, and the first one ends
/// the first round: as in the paper, the first worker to report is the slowest known. Under `timed`
/// steps are probes, of the least part where there is a global batch, of two samples at least, and
/// no worker synchronizes until all have reported. `least_part`: 0 without a global batch.
FirstPace first_pace(PaceRule rule, std::uint32_t batch_size, std::uint32_t least_part = 0);

/// The period that a worker adopts in `round`, in which it synchronizes: the greatest power of two,
/// at most `wanted`, such that rounds of that period begin there, counted from `first`, which
/// begins rounds of any period. So two workers of a round agree on when they are in the same one
/// again, although each adopts another period in rounds that the other misses (`RoundBook`).
std::uint32_t adopted_period(std::uint64_t round, std::uint64_t first, std::uint32_t wanted);

/// The least share of a mini-batch that is worth a step: a sixteenth, and at least two samples,
/// which the variance of BatchNorm needs.
std::uint32_t probe_samples(std::uint32_t batch_size);

/// The time of a pass over a batch.
struct TimedPass {
  std::uint32_t samples = 0;
  double seconds = 0;
};

/// The least size of steps with at least nine tenths of the speed of steps of `whole` samples, by
/// two passes of different size. The time of a pass is taken for a constant, such as for the
/// gradient of the weights, plus a time for each sample; neither is negative.
std::uint32_t efficient_samples(const TimedPass& few, const TimedPass& more, std::uint32_t whole);

/// The state of a pacer, for observers.
struct PacerState {
  struct Worker {
    bool present = true;
    double step_seconds = 0;    ///< estimated, of its next steps; 0: unknown
    double sample_seconds = 0;  ///< estimated; 0: unknown
    std::uint64_t round = 0;    ///< of its current step
    std::uint64_t steps = 0;    ///< done in that round
    std::optional<std::uint64_t> sync_after;
    std::uint32_t step_samples = 0;
    std::optional<PaceReason> reason;  ///< of the last decision
    bool overdue = false;              ///< its current step should have ended
    std::uint32_t period = 1;          ///< decided: it synchronizes in every round of that many
  };

  std::uint64_t round = 0;           ///< its synchronization is in progress, or comes next
  Duration round_time{};             ///< planned; zero: unknown
  Duration communication{};          ///< estimated, of a synchronization; zero: unknown
  std::vector<Worker> workers = {};  ///< by rank
};

/// The share of each worker in the speed of all workers, by rank: 0 for one that is gone. Empty
/// until the speed of every worker present is known.
std::vector<double> speed_shares(const PacerState& state);

/// The last decisions that a worker has received. Empty at first.
struct PaceOrder {
  std::uint64_t round = 0;         ///< of `sync_after`
  std::uint64_t sync_after = 0;    ///< local steps; 0: not decided
  std::uint32_t step_samples = 0;  ///< of the next steps; 0: not decided
  std::uint32_t period = 0;        ///< rounds from one synchronization to the next; 0: not decided
  std::uint32_t whole = 0;         ///< samples of the least whole step; 0: a mini-batch
};

/// A worker's access to the pacer. Messages go one way: no call waits for an answer.
class PacerClient {
 public:
  virtual ~PacerClient() = default;

  virtual void report(const StepReport& report) = 0;
  virtual PaceOrder order() const = 0;
};

}  // namespace syncopate
