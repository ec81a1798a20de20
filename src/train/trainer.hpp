#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/snapshot.hpp"
#include "data/dataset.hpp"
#include "job/spec/config.hpp"
#include "membership/member_link.hpp"
#include "optim/schedule.hpp"
#include "report/run_folder.hpp"
#include "scheme/scheme.hpp"
#include "train/device_clock.hpp"
#include "train/gradient_check.hpp"
#include "train/loader.hpp"
#include "train/progress_policy.hpp"
#include "train/step_handover.hpp"
#include "train/step_times.hpp"
#include "train/training_clock.hpp"
#include "train/worker_report.hpp"
#include "train/worker_trace.hpp"

namespace syncopate {

/// One worker's training loop: it fetches a batch, computes, calls the scheme, and then acts on the
/// synchronization round: a snapshot for the evaluator, a checkpoint, the end.
///
/// The sync mode's `ProgressPolicy` decides which of these the workers agree on, and whether their
/// duration is taken off the training clock.
///
/// In an asynchronous job, the first worker that sees the job's samples complete, or its time over,
/// reports it to the coordinator, which stops all workers. A step in hand is then cancelled, and
/// counted as such; the training clock stands still from then on, however long a worker that is
/// suspended keeps the job from its end.
///
/// Where a program's own loop computes the gradients, the worker goes on until that loop has left.
/// In a synchronous job it then goes on without samples until the loops of all workers have left.
///
/// A checkpoint that all workers agree on holds the states of all. Workers that are paced by time
/// go on from it at the same moment, so that a run which is resumed there does the same.
///
/// Thread: one.
class Trainer {
 public:
  struct Options {
    const TrainConfig& config;
    const Dataset& dataset;
    BatchFeed feed;
    std::optional<DevicePacer> pacer;
    RunFolder folder;
    Rank rank;
    SyncMode sync_mode = SyncMode::lockstep;
    double samples_per_step = 0;          ///< of all workers
    std::uint32_t batch_size = 0;         ///< samples of a whole step of this worker
    std::uint64_t samples_to_train = 0;   ///< of all workers, those before a resume included
    TrainingProgress start;               ///< zero, or the progress of the checkpoint
    std::optional<LoopState> resumed{};   ///< this worker's state in the checkpoint, if it has one
    bool own_optimizers = false;          ///< each worker's optimizer has a state of its own
    bool leads = false;                   ///< has the model tested and saved for all
    bool gathers_at_the_end = false;      ///< the model is complete when every worker has ended
    bool takes_model_at_the_end = false;  ///< the server's, for a program that goes on with it
    /// Samples per second of the device by itself, known before training; 0: unknown.
    double stand_alone_throughput = 0;
    /// A program's own loop, which decides when this worker leaves; null: the configuration does.
    const StepHandover* loop = nullptr;
  };

  Trainer(World& world, MemberLink& link, Replica& replica, Scheme& scheme, Options options);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Trains until the configuration, the coordinator or the user ends the job.
  /// Errors: the error that ended the job; DataError, when a checkpoint cannot be written;
  ///         ConfigError, for a worker without training samples that cannot take empty steps.
  void run();

  /// The status of this worker after `run`.
  wire::Heartbeat last_status() { return report_.last(); }

 private:
  struct Pass {
    PassResult result;
    double learning_rate = 0;
  };

  // The loop.
  void one_step();
  Pass compute();
  Outcome synchronize(const Pass& pass, const StepRequests& requests);
  void finish();
  void await_others();
  void cancel_step();
  void report_if_complete();
  void report_if_out_of_time();
  void stop_clock();
  GradientSink* sink_for(const Batch& batch);
  void wait_for_device(std::uint32_t samples);
  void wait_until(TimePoint due);
  double learning_rate(std::uint32_t samples);
  double rate_factor(std::uint32_t samples);
  void forecast_step(std::uint32_t samples);
  StepRequests requests_after(std::uint32_t samples);
  StepRequests requests();
  bool admit(PassResult& pass);
  bool has_finite_gradient();
  void count_time(const Spent& spent, Duration held, std::uint32_t samples);
  void act_on(const SyncRound& sync_round, double learning_rate);
  void count_round(const SyncRound& sync_round);
  void pause_since(TimePoint start);
  void held_since(TimePoint start);
  Duration held_by_others(const SyncRound& sync_round) const;
  Standing standing() const;
  double epoch() const { return policy_->epochs(standing()); }
  bool is_complete() const { return policy_->is_complete(standing()); }
  bool is_out_of_time() const;
  bool loop_has_left() const { return options_.loop != nullptr && options_.loop->has_left(); }
  PeriodicTrigger::Moment moment() const;

  // Snapshots and checkpoints: trainer_checkpoints.cpp.
  void save_first();
  void save_last();
  bool evaluation_due();
  bool checkpoint_due();
  void save(bool evaluate, bool checkpoint);
  void save(bool evaluate, bool checkpoint, ModelSnapshot model);
  void save_all_workers(bool evaluate);
  ModelSnapshot model_with_all_states();
  void restart_all_workers(ModelSnapshot& model);
  States own_states() const;
  ModelSnapshot copy_of_model();

  World& world_;
  MemberLink& link_;
  Replica& replica_;
  Scheme& scheme_;
  Options options_;
  Schedule schedule_;
  std::unique_ptr<ProgressPolicy> policy_;
  PeriodicTrigger evaluations_;
  PeriodicTrigger checkpoints_;
  DataPosition first_position_;
  WorkerTrace trace_;  ///< before the loader, which reports to it
  Loader loader_;
  MicroBatcher batches_;
  std::optional<SnapshotWriter> snapshots_;  ///< of the worker that leads
  WorkerReport report_;
  StepTimes times_;
  StepForecast forecast_;
  TrainingClock clock_;
  DeviceClock device_;
  PacedGradientSink gate_;
  SampleEstimate estimate_;

  TrainingProgress progress_;
  OwnContribution pending_{};            ///< of this worker, since its last synchronization
  std::optional<std::uint64_t> tested_;  ///< the round of the last snapshot
  std::uint64_t saved_;                  ///< the round of the last checkpoint; 0 before the first
  GradientCheck finite_;
  std::optional<bool> reports_operators_;  ///< as progress of a pass, by the replica
  Duration paused_{};  ///< off the training clock since the last synchronization
  bool done_ = false;
  bool reported_complete_ = false;
  bool reported_out_of_time_ = false;
};

}  // namespace syncopate
