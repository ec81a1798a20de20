#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "pacer/pace_estimate.hpp"
#include "pacer/pacer_client.hpp"
#include "pacer/round_plan.hpp"
#include "wire/control.pb.h"

namespace syncopate {

/// The state server of ESync (Li et al. 2019), by which devices of unequal speed reach a
/// synchronization at the same time: it decides after how many local steps each worker
/// synchronizes, and the size of these steps. A pure state machine: reports and moments in,
/// decisions out.
///
/// Messages go one way, so the pacer decides ahead: a worker receives "synchronize after k + 1
/// steps" while it computes step k + 1. No step is wasted, and no device waits for an answer.
///
/// c_i is the estimated time of a step of worker i, k_i the steps that it has done in this round,
/// e_i the moment at which its current step is expected to end (not before now), ε the margin (of
/// the slowest worker's estimate, or `Options::margin`: the paper's is 0.5 s), q the time of a
/// synchronization. The current step began at the worker's last report. If workers do not overlap,
/// the first step of a round began when the previous synchronization had ended: at its last entry +
/// q.
///
/// `paper` (algorithm 2), with s = argmax c_i: worker i synchronizes after k_i + 1 steps when
///         - i = s, or
///         - s has entered the synchronization, or
///         - e_i + c_i + ε > e_s, so that there is no time for another step.
///         The first round is one step of each worker (`first_pace`).
/// `timed`: round r is planned to end at F_r (`RoundPlan`), the first one T after every worker has
///         reported. Worker i synchronizes after the step that is expected to end nearest to F_r,
///         if workers overlap; else after the last step that ends by F_r; after one step at least.
///         T is `round_time`, or `shortest_round`; sizes of steps are those of `fitting_samples` in
///         T (in T − q without overlap); until all workers have reported, in the `shortest_round`
///         of those that have. Once the workers have trained on all samples of the job, or one
///         wants it to end, each synchronizes after its current step: no round carries the job past
///         its end, however long the round was planned. (A round of `paper` cannot end before the
///         mini-batch of the slowest worker.)
///         A slow worker has a period p_i above 1 (`period_of`), if `longest_period` allows one: it
///         synchronizes in every p_i-th round, and its steps have the time of that many. It gets
///         the period ahead, and adopts it where rounds of that period begin (`RoundBook`).
///
/// A worker that has not reported counts as the slowest: until it reports, no other synchronizes.
///
/// Invariants: the pacer decides one `sync_after` per worker and round, of at least one step, and
///             only once every worker has entered the last synchronization that this worker was
///             to enter. A round has one synchronization; every worker present whose round it is
///             enters it once.
/// Liveness:   while the workers present continue to take steps, the pacer decides for each in
///             finite time, whatever the estimates are. No worker waits for one that is gone.
/// Order:      a worker's reports in the order of its steps. A moment before the latest one counts
///             as the latest.
/// Thread:     one at a time.
class Pacer {
 public:
  using Rule = PaceRule;
  struct Options {
    std::vector<std::uint32_t> batch_sizes;  ///< whole mini-batches, by rank
    Rule rule = Rule::timed;
    std::optional<Duration> round_time = {};  ///< of `timed`; empty: auto
    std::optional<Duration> margin = {};      ///< ε of `paper`; empty: by the measured spread
    bool overlap = true;                      ///< workers train during a synchronization
    std::uint32_t longest_period = 1;         ///< a power of two; 1: every worker is in every round
    std::uint32_t global_batch = 0;           ///< of `timed`: divided by speed; 0: there is none
    std::uint32_t least_part = 1;             ///< of the global batch, for each worker
    std::uint64_t done = 0;                   ///< rounds before, in a run that is resumed
  };

  /// All workers are present at first.
  /// Errors: ConfigError if a batch size is 0, the round time is not above 0, or the margin is
  ///         negative.
  explicit Pacer(Options options);

  /// Takes the report of a worker; that of a worker that is gone has no effect.
  /// Errors: ProtocolError if the rank is unknown, the report is of another round than the worker
  ///         is in, its steps do not grow, a duration is negative, or its synchronization is not
  ///         open. The pacer is then unchanged.
  Paces stepped(Rank worker, const StepReport& report, TimePoint now);
  /// Called when the worker has died or is done: no other worker waits for it any more.
  Paces left(Rank worker, TimePoint now);
  /// Called when a worker that had left is back. It begins as at first: without a report, at
  /// `first_pace`, in the round whose synchronization is next.
  /// Errors: InternalError if the worker is present or unknown.
  Paces joined(Rank worker, TimePoint now);
  /// Call this regularly: a step may take longer than estimated, without any report.
  Paces time_passed(TimePoint now);

  /// A worker's device takes that long for a sample, as was measured before its first step. Where
  /// the speeds of all are known, no round waits for a first report. Without effect under `paper`,
  /// and on a worker that has reported.
  void expect(Rank worker, double sample_seconds);
  /// A worker's device is slow in steps of fewer samples: it gets no smaller part of the global
  /// batch.
  void expect_least(Rank worker, std::uint32_t samples);

  /// In which round after the last one each worker synchronizes first, by rank, if they restart
  /// now.
  std::vector<std::uint32_t> periods_at_restart() const;

  /// Called when every worker present has entered the synchronization of the previous round, or
  /// none has taken a step, and all continue at this moment: each synchronizes in the round that
  /// `periods_at_restart` says.
  Paces restart(TimePoint now);

  /// The pacer's estimates, for checkpoints.
  wire::PacerMemory memory() const;
  /// Continues with the memory of another pacer. Call it before `restart`.
  /// Errors: ConfigError if the memory is of another number of workers.
  void load(const wire::PacerMemory& memory);

  /// The state after the last call.
  PacerState state() const;

 private:
  struct Worker {
    bool present = true;
    bool reported = false;
    std::uint64_t round = 0;                  ///< of its next synchronization
    std::uint32_t rounds = 1;                 ///< from its last synchronization to the next
    std::uint32_t period = 1;                 ///< decided for the rounds after that
    bool unsent = false;                      ///< the worker may think that its period is another
    std::uint64_t steps = 0;                  ///< done in that round
    std::uint64_t samples = 0;                ///< of these steps
    std::optional<std::uint64_t> sync_after;  ///< decided for that round
    std::uint32_t batch_size = 0;
    std::uint32_t part = 0;             ///< of the global batch; 0: none, or not known
    std::uint32_t least_part = 1;       ///< of the global batch
    std::uint32_t step_samples = 0;     ///< decided for the next steps
    std::uint32_t current_samples = 0;  ///< of the current step
    TimePoint step_began{};
    PaceEstimate estimate{};
    std::optional<PaceReason> reason{};
    bool waits = false;  ///< for all others, without samples
  };

  Worker new_worker(std::uint32_t batch_size) const;
  void expect_possible(Rank rank, const StepReport& report) const;
  void record(Worker& worker, const StepReport& report);
  void advance_to(TimePoint now);

  Paces decide();
  bool is_complete() const;
  bool all_reported() const;
  bool is_at_the_end() const;
  void open_next_round();
  std::vector<DeviceSpeed> known_speeds() const;
  DeviceSpeed speed_of(const Worker& worker) const;
  void divide_batch();
  std::optional<Pace> next_pace(Rank rank);
  std::uint32_t size_for(const Worker& worker) const;
  std::uint32_t period_for(const Worker& worker) const;
  std::uint32_t rounds_of_next_step(const Worker& worker) const;
  bool is_open_to(const Worker& worker) const;
  std::optional<PaceReason> reason_to_synchronize(const Worker& worker) const;
  bool all_wait() const;
  std::optional<PaceReason> reason_by_paper(const Worker& worker) const;
  std::optional<PaceReason> reason_by_time(const Worker& worker) const;

  const Worker& slowest() const;
  Duration step_time(const Worker& worker) const;
  TimePoint expected_end(const Worker& worker) const;
  bool is_overdue(const Worker& worker) const;
  PacerState::Worker state_of(const Worker& worker) const;

  Options options_;
  std::vector<Worker> workers_;      ///< by rank
  std::uint64_t round_;              ///< its synchronization is next, or in progress
  std::uint64_t base_;               ///< the round before this run, or before the last restart
  std::uint64_t samples_ = 0;        ///< of all that have entered a synchronization
  std::uint64_t samples_to_do_ = 0;  ///< 0: no limit, or no worker has reported
  bool ends_ = false;                ///< a worker wants the job to end
  RoundPlan plan_;
  TimePoint now_{};
};

}  // namespace syncopate
