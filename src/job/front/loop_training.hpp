#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "job/front/loop_job.hpp"
#include "job/front/loop_member.hpp"
#include "job/front/loop_worker.hpp"
#include "train/program_replica.hpp"

namespace syncopate {

/// What the job needs to know of a program's optimizer.
struct LoopOptimizer {
  double learning_rate = 0;
  /// Options of `syncopate train` that describe its rule: {"optimizer", "momentum"}, {"momentum",
  /// "0.9"}. A parameter server that keeps the model applies it.
  std::map<std::string, std::string> rule = {};
  std::string has_no_rule = {};  ///< why a server cannot apply it; empty: it can
};

/// The training of one replica by a program's own loop: `ProgramReplica` holds the gradients, and
/// the job's scheme decides what happens to them.
///
/// Thread: as the job.
class LoopTraining {
 public:
  struct Options {
    LoopOptimizer optimizer;
    std::string scheme = {};                          ///< as `InitOptions::scheme`
    std::map<std::string, std::string> options = {};  ///< as `InitOptions::options`
    /// Samples of a step of this worker, where `LoopJob::share` has not said so.
    std::optional<std::uint32_t> batch_size = {};
    /// Gets each line of this worker's log of rounds; may be empty. A job of one process has none.
    std::function<void(const std::string& line)> on_round = {};
  };

  /// Waits until every worker has made one, and gives all replicas the same parameters. Once for a
  /// job of more than one process. Errors: ConfigError; the error that ended the job.
  LoopTraining(const LoopJob& job, std::unique_ptr<ProgramReplica> replica, const Options& options);
  /// Finishes. Not to be called in a process that the job's own has forked (`is_of_this_process`).
  ~LoopTraining();
  LoopTraining(const LoopTraining&) = delete;
  LoopTraining& operator=(const LoopTraining&) = delete;

  /// True where a parameter server takes the optimizer's steps.
  bool server_steps() const { return server_steps_; }
  /// True where a parameter server takes steps of the whole model by a rule that moves parameters
  /// whose gradient is zero, such as one with a momentum or a weight decay.
  bool server_moves_all() const { return server_moves_all_; }
  /// True where a step takes the mean gradient of all workers, who take all steps together.
  bool shares_gradients() const { return shares_gradients_; }
  /// True where gradients leave during the backward pass, as far as the program reports them:
  /// `ssgd` with option `overlap` `on`.
  bool overlaps() const { return overlaps_; }
  /// Samples of a usual step.
  std::uint32_t batch_size() const { return sizes_.step_size; }

  /// Samples of all workers on which the parameters have been trained, as known to this worker; in
  /// a step of the program's optimizer, those before it.
  std::uint64_t samples() const { return worker_->samples(); }

  /// Samples that the scheme wants in the next step: those of a usual one, unless it follows the
  /// speeds of the devices.
  std::uint32_t next_samples() const;

  /// The backward pass of a step of `samples` samples begins. At most once a step, and not
  /// necessarily. Errors: those of `step`.
  void begin_pass(std::uint32_t samples);
  /// `count` values of the gradient from `first` on are final: the program neither reads nor writes
  /// them before `step` has returned. The pass need not say so of all of them. Errors: ConfigError,
  /// for values that were reported before, and without `begin_pass`.
  void gradients_ready(std::size_t first, std::size_t count);

  /// From now on steps are taken with these settings of the program's optimizer. Where workers
  /// share gradients, a step with other settings than those of the other workers ends the job by a
  /// ConfigError. A program that never says them answers for this itself.
  void use_settings(const StepSettings& settings);
  /// From now on the gradients of steps are those of the tensors with a flag other than 0, of
  /// `ProgramReplica::tensors`; before, of all.
  void has_gradients(const std::uint8_t* flags);

  /// The replica holds the mean gradient of `samples` samples. Returns when it holds the parameters
  /// for the next step. Errors: the error that ended the job; Cancelled, when the user has ended
  /// it; ConfigError, after `finish`, and for another number of samples than the pass began with.
  void step(std::uint32_t samples);
  /// The same for a process that is alone and has looked at its gradient. Errors: also ConfigError,
  /// in a job of others.
  void step_alone(std::uint32_t samples, bool finite);

  /// Called by all workers, between two steps: waits until all have called it, even after different
  /// numbers of steps. Meanwhile this worker takes part in the rounds of the others without
  /// samples, and holds none of them up. All replicas are equal afterwards, unless the scheme
  /// leaves each worker its own. Gradients stay. `place`: its name, the same on all workers.
  /// Errors: those of `step`; ConfigError if workers pass different names.
  void align(const std::string& place);

  /// Called by all workers, between two steps: their programs have given all replicas the same
  /// parameters and buffers, while no worker had samples that others have not yet taken. Training
  /// goes on from these. Errors: as `step`.
  void take_replica();

  /// The loop takes no further step, but that of a pass which has begun. Waits for the loops of all
  /// workers; then the replica holds the model of the job. Errors: the error that ended the job.
  void finish();

  /// The program leaves its loop by an error, which ends the job for all workers with `reason`.
  void abandon(const std::string& reason);

  /// False in a process that the job's own has forked.
  bool is_of_this_process() const { return job_->is_of_this_process(); }

 private:
  void expect_unfinished() const;
  void end_loop();
  void take(std::uint32_t samples);

  std::shared_ptr<LoopJob::Member> job_;
  const ShareSizes sizes_;
  bool server_steps_ = false;
  bool server_moves_all_ = false;
  bool shares_gradients_ = false;
  bool overlaps_ = false;
  bool finished_ = false;
  std::optional<std::uint32_t> pass_;  ///< the samples with which one has begun
  StepSettings settings_;              ///< of the program's optimizer
  GradientSet gradients_;              ///< of the next step
  std::unique_ptr<LoopWorker> worker_;
};

}  // namespace syncopate
