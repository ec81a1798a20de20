#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "checkpoint/snapshot.hpp"
#include "membership/member_link.hpp"
#include "optim/schedule.hpp"
#include "pacer/pacer_control.hpp"
#include "scheme/scheme.hpp"
#include "train/device_clock.hpp"
#include "train/gradient_check.hpp"
#include "train/member_roles.hpp"
#include "train/progress_policy.hpp"
#include "train/reported_gradient.hpp"
#include "train/step_times.hpp"
#include "train/training_clock.hpp"
#include "train/worker_report.hpp"
#include "train/worker_setup.hpp"
#include "train/worker_trace.hpp"

namespace syncopate {

/// One worker's part in the training, from its first step to its end. The caller owns the loop: it
/// computes the gradients, in the built-in trainer or in a program, and calls the session around
/// each pass. The session runs the scheme, and acts on each synchronization round: a snapshot for
/// the evaluator, a checkpoint, the end.
///
/// Order:   `start`; for each step `begin`, `compute`, at most one `sink`, and `end`, until
///          `is_done`; then `finish`. A program's loop may end earlier: `finish` then takes steps
///          without samples until the loops of all workers have ended. A program may call `align`
///          and `take_replica` after `compute`, and then goes on with the same step.
/// Thread:  one at a time. The calls block while they wait for other workers.
/// Errors:  of all calls: the error that ended the job. The caller passes it to `MemberLink::fail`,
///          and does not use the session any more.
///
/// The sync mode's `ProgressPolicy` decides on which actions the workers agree, and whether their
/// duration is taken off the training clock. A checkpoint on which all workers agree holds the
/// states of all. Workers that are paced by time continue from it at the same moment, as a run
/// does that is resumed there.
///
/// In an asynchronous job, the first worker that sees the job's samples complete, or its time over,
/// reports this to the coordinator, which stops all workers. A step under way is then cancelled,
/// and counted as such. The training clock stands still from then on, even if a suspended worker
/// delays the end of the job.
class WorkerSession {
 public:
  /// Joins the job through `link`, and gives the replica the state with which all workers begin.
  /// All arguments outlive the session, and so does what `options` refer to. Errors: also
  /// DataError for a checkpoint that cannot be read.
  WorkerSession(World& world, MemberLink& link, Replica& replica, const WorkerOptions& options);
  ~WorkerSession();
  WorkerSession(const WorkerSession&) = delete;
  WorkerSession& operator=(const WorkerSession&) = delete;

  /// Starts the training clock, and saves the first model if the job saves any.
  void start();
  /// True once the job has ended for this worker: `finish` follows.
  bool is_done() const { return done_; }

  /// Begins a step: the caller now gets its batch. Returns the number of samples that the scheme
  /// wants in it; 0: a whole mini-batch.
  std::uint32_t begin();
  /// How all workers divide that step, by rank; empty: the scheme divides none.
  std::span<const std::uint32_t> parts() const;
  /// The caller computes a pass over `samples` samples, which takes at most `longest`; zero: the
  /// other workers wait as long as the pass makes progress.
  void compute(std::uint32_t samples, Duration longest = Duration::zero());
  /// The receiver of the gradient while the pass over `samples` samples computes it. Null if the
  /// scheme takes gradients only as a whole, and if gradients that are not finite are skipped,
  /// which is known only once the whole gradient is there.
  GradientSink* sink(std::uint32_t samples);
  /// The gradient of the step is in the replica, of the samples of `compute`, or of as many as the
  /// batch of a program has. The scheme acts on it; afterwards the replica has
  /// the parameters for the next step. `position`: in the data, after the step.
  /// Returns the time that the pass has taken on this worker's device; empty if the step was
  /// cancelled, because the job has ended.
  /// Errors: also NotFinite; DataError if a checkpoint cannot be written.
  std::optional<Duration> end(PassResult pass, const DataPosition& position = {});

  /// Between two steps: waits until every worker has called it, even after different numbers of
  /// steps. Meanwhile this worker takes part in the rounds of the others without samples, and holds
  /// none of them up. Afterwards all replicas are equal, unless the scheme leaves each worker its
  /// own. Gradients stay. `name`: of the place in the program, the same on all workers.
  /// Errors: also ConfigError if workers pass different names.
  void align(const std::string& name);
  /// Between two steps: the caller has given the replica the same parameters and buffers as the
  /// callers of all other workers.
  void take_replica();
  /// Ends this worker's part: contributes pending steps, waits for the other workers where the
  /// scheme requires it, has the last model tested and saved, and leaves the job.
  void finish();

  // What the built-in trainer needs besides.

  /// Where this worker's data begin.
  const DataPosition& first_position() const { return first_position_; }
  /// True if mini-batches without samples, which fill up an epoch, are no steps.
  bool skips_empty_batches() const { return policy_->rules().skips_empty_batches; }
  /// The usual time of a step of `samples` samples on an emulated device; else zero.
  Duration usual_step_time(std::uint32_t samples) const { return device_.mean_step_time(samples); }
  WorkerTrace& trace() { return trace_; }
  WorkerReport& report() { return report_; }

 private:
  // The loop.
  Duration since_begun() const;
  Outcome synchronize(const PassResult& pass, const StepRequests& requests);
  void contribute_rest();
  void await_others();
  void report_if_complete();
  void report_if_out_of_time();
  void stop_clock();
  void wait_for_device(std::uint32_t samples);
  void wait_until(TimePoint due);
  double learning_rate(std::uint32_t samples);
  void use_rate_of(std::uint32_t samples);
  StepRequests requests_after(std::uint32_t samples);
  StepRequests requests();
  bool admit(PassResult& pass);
  bool has_finite_gradient();
  void count_time(const Spent& spent, Duration held, std::uint32_t samples);
  void act_on(const SyncRound& sync_round);
  void count_round(const SyncRound& sync_round);
  void pause_since(TimePoint start);
  void held_since(TimePoint start);
  Duration held_by_others(const SyncRound& sync_round) const;
  Standing standing() const;
  double epoch() const { return policy_->epochs(standing()); }
  bool is_complete() const { return policy_->is_complete(standing()); }
  bool is_out_of_time() const;
  PeriodicTrigger::Moment moment() const;

  // Steps without samples: session_alignment.cpp.
  void step_without_samples();
  void throw_if_interrupted();
  void take_steps_without_samples();
  void wait_in_rounds(WaitingPlace place, const std::string& name);
  void wait_outside_of_rounds(WaitingPlace place, const std::string& name);
  [[noreturn]] void refuse_place(const std::string& name, Rank other) const;

  // Snapshots and checkpoints: session_saves.cpp.
  void save_first();
  void save_last();
  bool evaluation_due();
  bool checkpoint_due();
  void save(bool evaluate, bool checkpoint);
  void save(bool evaluate, bool checkpoint, ModelSnapshot model);
  void save_all_workers(bool evaluate);
  ModelSnapshot model_with_all_states();
  void restart_all_workers(ModelSnapshot& model);
  void restart_rounds(Scheme& scheme, const wire::PacerMemory& pacer) const;
  void agree_after_failures();
  States own_states() const;
  ModelSnapshot copy_of_model();

  std::unique_ptr<Scheme> begin_together();
  ProgressPolicy::Job counted() const;
  const TrainConfig& config() const { return options_.plan.config(); }
  bool has_own_optimizer() const;
  bool leads() const;

  World& world_;
  MemberLink& link_;
  Replica& replica_;
  const WorkerOptions options_;
  PacerLink pacer_;
  WorkerSetup setup_;
  const std::unique_ptr<Scheme> scheme_;
  SchemeLife life_;
  const BatchFeed feed_;
  const Schedule schedule_;
  const std::uint32_t batch_size_;  ///< samples of a whole step of this worker
  const std::uint64_t samples_to_train_;
  const std::unique_ptr<ProgressPolicy> policy_;
  PeriodicTrigger evaluations_;
  PeriodicTrigger checkpoints_;
  const DataPosition first_position_;
  WorkerTrace trace_;
  std::optional<SnapshotWriter> snapshots_;  ///< of the worker that leads
  WorkerReport report_;
  StepTimes times_;
  TrainingClock clock_;
  DeviceClock device_;
  PacedGradientSink gate_;
  SampleEstimate estimate_;
  GradientCheck finite_;

  TrainingProgress progress_;
  DataPosition position_;                ///< in the data, after the last step
  TimePoint asked_{};                    ///< whether the program is interrupted
  TimePoint data_begun_{};               ///< the wait for the batch of this step
  double learning_rate_ = 0;             ///< of this step
  std::uint32_t rate_samples_ = 0;       ///< the samples for which it is
  OwnContribution pending_{};            ///< of this worker, since its last synchronization
  std::optional<std::uint64_t> tested_;  ///< the round of the last snapshot
  std::uint64_t saved_;                  ///< the round of the last checkpoint; 0 before the first
  Duration paused_{};                    ///< off the training clock since the last synchronization
  WaitingPlace place_;             ///< at which this worker takes steps without samples; or none
  bool place_is_agreed_ = false;   ///< every worker waits there
  std::optional<Rank> elsewhere_;  ///< a worker that waits elsewhere
  std::uint32_t alignments_ = 0;   ///< calls of `align` so far
  bool done_ = false;
  bool reported_complete_ = false;
  bool reported_out_of_time_ = false;
};

}  // namespace syncopate
