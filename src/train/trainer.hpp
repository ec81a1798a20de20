#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cluster/device_profile.hpp"
#include "cluster/member_link.hpp"
#include "data/dataset.hpp"
#include "scheme/scheme.hpp"
#include "telemetry/histogram.hpp"
#include "telemetry/json_lines.hpp"
#include "train/batch_feed.hpp"
#include "train/checkpoint.hpp"
#include "train/config.hpp"
#include "train/loader.hpp"
#include "train/phase_clock.hpp"
#include "train/recurrence.hpp"
#include "train/run_folder.hpp"
#include "train/schedule.hpp"
#include "train/snapshot.hpp"

namespace syncopate {

/// One worker's training loop: fetch, compute, let the scheme decide, and do what a meeting agreed
/// upon: a snapshot for the evaluator, a checkpoint, the end.
class Trainer {
 public:
  struct Options {
    const TrainConfig& config;
    const Dataset& dataset;
    BatchFeed feed;
    std::optional<DevicePacer> pacer;
    RunFolder folder;
    Rank rank;
    double samples_per_step = 0;              ///< of all workers
    Progress start;                           ///< zero, or that of the checkpoint
    std::optional<SnapshotSender> snapshots;  ///< of rank 0
  };

  Trainer(World& world, MemberLink& link, Replica& replica, Scheme& scheme, Options options);

  /// Trains until the configuration, the coordinator or the user has had enough.
  /// Errors: what ended the job; DataError, when the run folder cannot be written.
  void run();

  /// What this worker has done, for heartbeats and as its last word.
  wire::Heartbeat status(const std::string& phase) const;

 private:
  struct Pass {
    PassResult result;
    double learning_rate = 0;
  };

  void one_step();
  Pass compute();
  void pace(Duration begun, std::uint32_t samples);
  Wishes wishes();
  void account(const Outcome& outcome);
  void act_on(const Meeting& meeting, double learning_rate);
  void snapshot_and_checkpoint(bool evaluate, bool checkpoint);
  void save_checkpoint();
  void log_round(const Meeting& meeting, double learning_rate);
  void enter(const std::string& phase);
  double epoch() const;
  FeedPosition position() const { return options_.feed.position_after(Step{progress_.step}); }
  std::uint64_t last_step() const;
  bool reached_the_end() const;
  Recurrence::Moment moment() const;
  bool admit(PassResult& pass);
  /// Rank 0 tests and saves for all, unless the model is a server's.
  bool leads() const { return options_.rank == Rank{0} && !served_; }

  World& world_;
  MemberLink& link_;
  Replica& replica_;
  Scheme& scheme_;
  Options options_;
  bool lockstep_;  ///< all workers are at this one's step
  bool served_;    ///< the model is a parameter server's
  Schedule schedule_;
  Recurrence evaluations_;
  Recurrence checkpoints_;
  Loader loader_;
  JsonLines log_;
  PhaseClock phases_;
  TrainingClock clock_;

  Progress progress_;
  std::uint64_t session_samples_ = 0;  ///< of this worker
  std::uint64_t pending_samples_ = 0;  ///< likewise, since its last meeting
  std::uint64_t dropped_ = 0;          ///< gradients left out by design
  std::uint64_t skipped_ = 0;          ///< batches left out because their gradient was not finite
  Histogram staleness_;
  wire::Counts staleness_told_;  ///< as of not long ago
  TimePoint next_telling_{};
  std::uint64_t overruns_ = 0;
  double loss_ = 0;             ///< mean over the last meeting's samples
  Recurrence::Moment asked_{};  ///< when it last wished
  Duration
      begun_{};  ///< the training clock when the step under way began: at the last meeting's end
  Duration last_update_{};
  Duration paused_{};  ///< off the training clock since the last meeting
  bool done_ = false;
};

}  // namespace syncopate
