#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "pacer/pace_estimate.hpp"
#include "pacer/pacer_client.hpp"
#include "wire/control.pb.h"

namespace syncopate {

/// The state server of ESync (Li et al. 2019), by which devices of unequal speed come to a meeting at
/// the same time: tells each worker after how many local steps it meets, and of what size they are.
/// A pure state machine: reports and moments in, decisions out.
///
/// Messages go one way, so the pacer decides ahead: a worker is told "meet after k + 1 steps" while the
/// step k + 1 is in hand. No step is done in vain, and no device waits for an answer. c_i is the
/// estimated time of a step of worker i, k_i the steps that it has done in this round, e_i when its
/// step in hand is expected to end (not before now), ε the margin (that of the slowest's estimate, or
/// `Options::margin`: the paper's is 0.5 s), q the time of a meeting. The step in hand began at the last report, or, where workers do not overlap, the first
/// one of a round when the meeting before had ended: at its last entry + q.
///
/// `paper` (algorithm 2): s = argmax c_i. Worker i meets after k_i + 1 steps when i = s; or s is at the
///         meeting; or e_i + c_i + ε > e_s, so that there is no time for another. The first round is
///         one step of each (`first_pace`).
/// `timed`: round r is planned to end at F_r = max(F_{r−1}, last entry into meeting r−1) + T, the first
///         T after every worker has been heard. Worker i meets after the step that is expected to end
///         nearest to F_r, if workers overlap; else after the last that ends by F_r; after one step
///         at least. T is `round_time`, or as `shortest_round` says; sizes of steps are those of
///         `fitting_samples` in T (in T − q without overlap); until all are heard, in what
///         `shortest_round` says of those that are.
///
/// A worker that was not heard yet is the slowest: until it is, no other is told.
///
/// Invariants: a worker is told one `meet_after` a round, of at least one step, and only of the round
///             whose meeting is next: after every worker present has entered the one before.
///             In every round one meeting; every worker present enters it once.
/// Liveness:   while those present go on with their steps, each is told in finite time, whatever the
///             estimates are. One that is gone holds nobody up.
/// Order:      a worker's reports in the order of its steps. Moments that go back count as the latest.
/// Thread:     one at a time.
class Pacer {
 public:
  using Rule = PaceRule;
  struct Options {
    std::vector<std::uint32_t> batch_sizes;  ///< whole mini-batches, by rank
    Rule rule = Rule::timed;
    std::optional<Duration> round_time = {};  ///< of `timed`; empty: auto
    std::optional<Duration> margin = {};      ///< ε of `paper`; empty: by the measured spread
    bool overlap = true;                      ///< workers train on while the sum travels
    std::uint64_t done = 0;                   ///< rounds that came before, in a run that is resumed
  };

  /// All workers are present. Errors: ConfigError, for a batch size of 0 or a round time not above 0.
  explicit Pacer(Options options);

  /// Of a worker that has gone, a report is late and has no effect.
  /// Errors: ProtocolError, for a rank that there is none of; a report of another round than the
  ///         worker is in; steps that do not grow; a negative duration; a meeting that is not open.
  ///         Nothing has changed then.
  Paces stepped(Rank worker, const StepReport& report, TimePoint now);
  /// It has died, or is done: nobody waits for it any more.
  Paces left(Rank worker, TimePoint now);
  /// One that had left is back, as it was at first: unheard, at `first_pace`, in the round whose
  /// meeting is next. Errors: InternalError, for one that is present or unknown.
  Paces joined(Rank worker, TimePoint now);
  /// To be called now and then: the estimates may turn out too short without any report.
  Paces time_passed(TimePoint now);

  /// Every worker present has entered the synchronization of the round before and goes on at this
  /// moment, at which the next round begins.
  Paces restart(TimePoint now);

  /// What it has learnt of the devices, and a pacer that is to go on with that: before `restart`, of as
  /// many workers. Errors: ConfigError, for another number of workers.
  wire::PacerMemory memory() const;
  void load(const wire::PacerMemory& memory);

  /// As of the last call.
  PacerState state() const;

 private:
  struct Worker {
    bool present = true;
    bool heard = false;
    std::uint64_t round = 0;            ///< that the step in hand belongs to
    std::uint64_t steps = 0;            ///< done of that round
    std::optional<std::uint64_t> told;  ///< when to meet in that round
    std::uint32_t batch_size = 0;
    std::uint32_t step_samples = 0;  ///< as told
    std::uint32_t in_hand = 0;       ///< samples of the step in hand
    TimePoint begun{};               ///< the step in hand
    PaceEstimate estimate{};
    std::optional<PaceReason> reason{};
  };

  Worker newcomer(std::uint32_t batch_size) const;
  void expect_possible(Rank rank, const StepReport& report) const;
  void take(Worker& worker, const StepReport& report);
  void see(TimePoint now);

  Paces decide();
  bool is_complete() const;
  bool everyone_heard() const;
  void open_next_round();
  void plan();
  Duration wanted_round_time() const;
  std::optional<Pace> next_pace(Rank rank);
  std::uint32_t size_for(const Worker& worker) const;
  std::optional<PaceReason> reason_to_meet(const Worker& worker) const;
  std::optional<PaceReason> reason_by_paper(const Worker& worker) const;
  std::optional<PaceReason> reason_by_time(const Worker& worker) const;

  const Worker& slowest() const;
  Duration step_time(const Worker& worker) const;
  TimePoint expected_end(const Worker& worker) const;
  bool is_overdue(const Worker& worker) const;
  Duration meeting_time() const;
  PacerState::Worker state_of(const Worker& worker) const;

  Options options_;
  std::vector<Worker> workers_;  ///< by rank
  std::uint64_t round_;          ///< whose meeting is under way, or comes next
  TimePoint now_{};
  PaceEstimate meetings_;               ///< a meeting counts as a step of one sample
  std::optional<Duration> round_time_;  ///< T
  std::optional<TimePoint> base_;       ///< max(F_{r−1}, last entry into meeting r−1)
  std::optional<TimePoint> end_;        ///< F_r
};

}  // namespace syncopate
