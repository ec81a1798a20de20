#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/snapshot_writer.hpp"
#include "checkpoint/worker_states.hpp"
#include "data/batch_feed.hpp"
#include "data/dataset.hpp"
#include "device/device_profile.hpp"
#include "job/spec/config.hpp"
#include "membership/member_link.hpp"
#include "optim/schedule.hpp"
#include "report/run_folder.hpp"
#include "scheme/scheme.hpp"
#include "scheme/scheme_spec.hpp"
#include "telemetry/histogram.hpp"
#include "telemetry/json_lines.hpp"
#include "train/loader.hpp"
#include "train/micro_batcher.hpp"
#include "train/paced_gradient_sink.hpp"
#include "train/periodic_trigger.hpp"
#include "train/phase_clock.hpp"
#include "train/sample_estimate.hpp"
#include "train/step_forecast.hpp"
#include "train/step_times.hpp"

namespace syncopate {

/// One worker's training loop: fetch, compute, let the scheme decide, and do what follows from a
/// meeting: a snapshot for the evaluator, a checkpoint, the end.
///
/// Where all workers are in step, these are agreed upon, and the time that a snapshot or a checkpoint
/// takes is taken off the training clock of all. Elsewhere the worker that leads decides by itself, and
/// nothing is taken off: others train on meanwhile.
///
/// Where each worker trains by itself, the job ends when its samples are complete: the worker that sees
/// it tells the coordinator, which stops all of them. A step in flight is then cancelled, and counted.
///
/// A checkpoint that all agree upon holds what every worker remembers. Where workers are paced by time, they
/// go on from it at one moment, so that a run which is resumed there does the same.
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
    double samples_per_step = 0;         ///< of all workers
    std::uint32_t batch_size = 0;        ///< of this worker: what a whole step takes
    std::uint64_t samples_to_train = 0;  ///< of all workers, what came before a resume included
    Progress start;                      ///< zero, or that of the checkpoint
    std::optional<LoopState> resumed{};  ///< what this worker goes on from, if a checkpoint says so
    bool own_optimizers = false;         ///< each worker's optimizer has a state of its own
    bool leads = false;                  ///< has the model tested and saved for all
    bool gathers_at_the_end = false;     ///< the model is complete when every worker has ended
    std::optional<NodeId> evaluator;     ///< whom to have it tested by
    /// Samples per second of the device by itself, known before training; 0: unknown.
    double stand_alone_throughput = 0;
  };

  Trainer(World& world, MemberLink& link, Replica& replica, Scheme& scheme, Options options);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Trains until the configuration, the coordinator or the user has had enough.
  /// Errors: what ended the job; DataError, when the run folder cannot be written.
  void run();

  /// What this worker has done, for heartbeats and as its last word.
  wire::Heartbeat status(const std::string& phase) const;

 private:
  /// Phases of a step, as heartbeats name them.
  static constexpr const char* phase_of_data = "data";
  static constexpr const char* phase_of_computing = "backward";

  struct Pass {
    PassResult result;
    double learning_rate = 0;
  };

  void one_step();
  void finish();
  void cancel_step();
  void report_if_complete();
  Pass compute();
  GradientSink* taker_of(const Batch& batch);
  void pace(Duration begun, std::uint32_t samples);
  Duration next_step_begins(const Spent& spent, std::uint32_t samples) const;
  void wait_until(TimePoint due);
  double learning_rate(std::uint32_t samples);
  void expect(std::uint32_t samples);
  std::uint64_t evaluation_bytes() const;
  StepRequests requests();
  void account(const Outcome& outcome);
  void tell_aggregate();
  void act_on(const SyncRound& meeting, double learning_rate);
  void keep_the_first();
  void pause_since(TimePoint start);
  void keep_the_last();
  bool evaluation_due();
  bool checkpoint_due();
  void keep(bool evaluate, bool checkpoint);
  void keep(bool evaluate, bool checkpoint, ModelSnapshot model);
  void checkpoint_with_all(bool evaluate);
  ModelSnapshot model_with_all_states();
  void go_on_together(ModelSnapshot& model);
  States own_states() const;
  ModelSnapshot copy_of_model();
  void log_round(const SyncRound& meeting, const OwnContribution& own, double learning_rate);
  void enter(const std::string& phase);
  double epoch() const;
  FeedPosition position() const { return options_.feed.position_after(Step{progress_.step}); }
  std::uint64_t last_step() const;
  bool reached_the_end() const;
  bool is_out_of_steps() const;
  PeriodicTrigger::Moment moment() const;
  bool admit(PassResult& pass);
  bool has_finite_gradient();
  bool in_step() const { return options_.sync_mode == SyncMode::lockstep; }
  bool alone() const { return options_.sync_mode == SyncMode::asynchronous; }

  World& world_;
  MemberLink& link_;
  Replica& replica_;
  Scheme& scheme_;
  Options options_;
  Schedule schedule_;
  PeriodicTrigger evaluations_;
  PeriodicTrigger checkpoints_;
  DataPosition begins_at_;
  Loader loader_;
  MicroBatcher batches_;
  std::optional<SnapshotWriter> snapshots_;  ///< of the worker that leads
  JsonLines log_;
  StepTimes times_;
  TrainingClock clock_;
  PacedGradientSink gate_;
  SampleEstimate estimate_;
  StepForecast forecast_;

  Progress progress_;
  std::optional<std::uint64_t> tested_;  ///< the round of the last snapshot
  std::uint64_t saved_;                  ///< the round of the last checkpoint; 0 before the first
  std::uint64_t session_samples_ = 0;    ///< of this worker
  OwnContribution pending_{};            ///< likewise, since its last meeting
  std::uint64_t dropped_ = 0;            ///< gradients left out by design
  std::uint64_t skipped_ = 0;            ///< batches left out because their gradient was not finite
  std::uint64_t skipped_in_a_row_ = 0;
  std::uint64_t cancelled_ = 0;  ///< steps that were in flight, or not handed over, at the end
  Histogram staleness_;
  wire::Counts staleness_told_;  ///< as of not long ago
  TimePoint next_telling_{};
  std::string aggregate_told_;
  std::uint64_t overruns_ = 0;
  double loss_ = 0;                                 ///< mean over the last meeting's samples
  PeriodicTrigger::Moment asked_to_evaluate_{};     ///< when it last asked
  PeriodicTrigger::Moment asked_for_checkpoint_{};  ///< likewise
  Duration begun_{};          ///< the training clock when the step under way began on its device
  Duration machine_begun_{};  ///< likewise, on the machine that emulates the device
  Duration
      device_ends_{};  ///< the training clock when an emulated device had its last step done, by its profile
  Duration last_update_{};
  Duration expected_{};                    ///< of the step in hand, at the most; zero: unknown
  std::optional<bool> reports_operators_;  ///< the replica, as the progress of its passes
  Duration paused_{};                      ///< off the training clock since the last meeting
  bool done_ = false;
  bool reported_complete_ = false;
};

}  // namespace syncopate
