#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "data/batch.hpp"
#include "data/batch_feed.hpp"
#include "scheme/scheme_spec.hpp"

namespace syncopate {

/// The progress of a worker and its job.
struct Standing {
  std::uint64_t step = 0;             ///< of this worker
  std::uint64_t samples = 0;          ///< of all workers, as of this worker's last synchronization
  std::uint64_t pending_samples = 0;  ///< of this worker, since then
};

/// Counts a worker's progress and makes the decisions that depend on it; one policy per sync mode.
///
/// Pure. Thread: one.
class ProgressPolicy {
 public:
  /// The job, and this worker's part of it.
  struct Job {
    const BatchFeed& feed;               ///< of this worker; outlives the policy
    double samples_per_step = 1;         ///< of all workers
    std::uint32_t batch_size = 1;        ///< of this worker
    std::uint64_t train_samples = 1;     ///< in the training set
    std::uint64_t samples_to_train = 0;  ///< of all workers, those before a resume included
    double epochs = 0;
    std::optional<std::uint64_t> max_steps{};
    bool own_loop = false;  ///< a program's, whose steps have any number of samples, or none
  };

  /// The properties of a sync mode beside the counting.
  struct Rules {
    bool skips_empty_batches = false;      ///< mini-batches without samples, which fill up an epoch
    bool agrees_on_evaluations = true;     ///< else the leading worker decides by itself
    bool pauses_clock = true;              ///< snapshots do not count as training time
    bool saves_all_workers = true;         ///< a checkpoint holds the states of all workers
    bool restarts_at_checkpoints = false;  ///< all workers continue from one at the same moment
    bool stops_at_once = false;            ///< a worker stops without the agreement of the others
  };

  ProgressPolicy(const Job& job, const Rules& rules) : job_(job), rules_(rules) {}
  virtual ~ProgressPolicy() = default;

  const Rules& rules() const { return rules_; }

  /// Steps of all workers in an epoch.
  virtual double steps_per_epoch() const;
  /// The position in its data at which a worker begins if its own state is not known. A step takes
  /// `step_samples` of a mini-batch; 0: all of it.
  virtual DataPosition first_position(const Standing& start, std::uint32_t step_samples) const;
  /// Steps of all workers that are done; a fraction if workers are at different steps.
  virtual double steps(const Standing& standing) const;
  virtual double epochs(const Standing& standing) const;
  /// The epoch that determines the learning rate of the next step. `samples_before`: the samples
  /// that all workers have trained on when the step is taken, as `SampleEstimate` expects.
  virtual double epoch_of_step(const Standing& standing, double samples_before) const;
  /// True if this worker has nothing left to do.
  virtual bool is_complete(const Standing& standing) const;
  /// True if no step of this worker can follow (`StepFacts::last`).
  virtual bool is_last_step(const Standing& standing) const { return is_out_of_steps(standing); }

 protected:
  const Job& job() const { return job_; }
  bool is_out_of_steps(const Standing& standing) const;

 private:
  Job job_;
  Rules rules_;
};

/// All workers are at the same step: a worker's own steps are those of the job.
class LockstepPolicy final : public ProgressPolicy {
 public:
  explicit LockstepPolicy(const Job& job) : ProgressPolicy(job, {}) {}

  double steps_per_epoch() const override;
  double steps(const Standing& standing) const override;
  double epochs(const Standing& standing) const override;
  double epoch_of_step(const Standing& standing, double samples_before) const override;
  bool is_complete(const Standing& standing) const override;
  bool is_last_step(const Standing& standing) const override { return is_complete(standing); }

 private:
  double epochs_by_steps(const Standing& standing) const;
  std::uint64_t last_step() const;
};

/// Workers take as many steps as they can between two rounds, in which all synchronize.
class LocalRoundsPolicy final : public ProgressPolicy {
 public:
  explicit LocalRoundsPolicy(const Job& job);

  DataPosition first_position(const Standing& start, std::uint32_t step_samples) const override;
};

/// Each worker trains by itself; the job ends when the samples of all workers make up its epochs.
class AsynchronousPolicy final : public ProgressPolicy {
 public:
  explicit AsynchronousPolicy(const Job& job);

  double steps(const Standing& standing) const override;
};

std::unique_ptr<ProgressPolicy> make_progress_policy(SyncMode mode, const ProgressPolicy::Job& job);

/// Estimates how many samples a job has trained on by the time a worker takes a step. The learning
/// rate of the step follows from it. Between two synchronizations, a worker counts its own samples
/// and estimates those of the others from their speeds.
///
/// With S the job's samples at the last synchronization, x this worker's since, b those of the
/// step, a its share of the speed of all and a₀ its share of a step of all workers, the step is
/// taken at
///
///     S + x / a + b · max(0, 1 / a − 1 / a₀)
///
/// where the last term counts the samples of faster workers while this one computes its step. At
/// equal pace (a = a₀) that is the count before the step, as in sequential SGD.
///
/// Exact at each synchronization. Thread: one.
class SampleEstimate {
 public:
  struct Options {
    std::uint64_t done = 0;  ///< before this worker's first step, in a run that is resumed
    double step_share = 1;   ///< a₀: this worker's samples of a step over those of all
    double speed_share = 0;  ///< a, in a run that is resumed; 0: unknown
  };

  explicit SampleEstimate(const Options& options)
      : synchronized_(static_cast<double>(options.done)),
        step_share_(options.step_share),
        share_(options.speed_share > 0 ? options.speed_share : options.step_share) {}

  /// This worker has taken a step.
  void trained(std::uint64_t samples) { own_ += static_cast<double>(samples); }
  /// The speeds of workers are known: a.
  void expect_share(double share) { share_ = share; }
  /// A synchronization over `samples` of all workers has ended; `since` of this worker's own
  /// samples are not among them. If it had samples among them, they give its share.
  void synchronized(std::uint64_t samples, std::uint64_t since);

  double when_taken(std::uint32_t step_samples) const;

  double share() const { return share_; }

 private:
  double synchronized_;
  double own_ = 0;
  double step_share_;
  double share_;
};

}  // namespace syncopate
