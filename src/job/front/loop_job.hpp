#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/time.hpp"
#include "scheme/scheme_spec.hpp"
#include "train/program_replica.hpp"

/// A job whose workers train by loops of their own programs: what stands behind `syncopate.h`.
namespace syncopate {

/// How a process finds the others of its job. Launchers pass it by environment variables.
struct JobEntry {
  std::string coordinator;  ///< HOST:PORT
  std::string key;          ///< the secret of the job
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t local_rank = 0;  ///< among the processes of this host
  /// HOST:PORT where this process listens; port 0: a free one.
  std::string address = "127.0.0.1:0";
  bool unencrypted = false;  ///< allows addresses beyond loopback: the network is trusted
};

/// What a program says when it joins. The command line of `syncopate run` may say it instead; both
/// may say the same, but not contradict each other.
struct InitOptions {
  std::string scheme = {};  ///< empty: that of the command line, else `ssgd`
  /// Options of `syncopate run`, by their names: {"local-steps", "4"}.
  std::map<std::string, std::string> options = {};
  /// Empty: from the environment; where that has none, the process is a job by itself.
  std::optional<JobEntry> entry = {};
  /// For the others in a collective of all workers: a program may work for long before it comes to
  /// one, and the loss of one is noticed at once.
  Duration wait_limit = usual_wait_limit;
  static constexpr Duration usual_wait_limit = std::chrono::minutes(30);
};

/// The order in which one worker trains on the samples of a dataset: in each epoch all workers
/// together take every sample once, in an order that follows from the job's seed. The option
/// data-order says whether a worker's part of it is fixed, or leased as the worker asks for more.
///
/// Thread: one.
/// Errors: of leased samples ConfigError, once the program has left the job and in a forked
///         process; the error that ended the job; Cancelled, when the user has ended it.
class LoopShare {
 public:
  class Order;
  explicit LoopShare(std::shared_ptr<Order> order);

  /// Samples of a step of this worker.
  std::size_t step_size() const;
  /// The indices of the next step, in order; empty at the end of an epoch. The call after that
  /// begins the next epoch.
  std::vector<std::size_t> next();
  /// Begins the next epoch, unless this one has not begun, or goes on by `resume` with the next
  /// step.
  void next_epoch();
  /// Goes on behind the first `step` steps of `epoch`, as an earlier job did. Where samples are
  /// leased the epoch begins again. Errors: ConfigError, for more steps than the epoch has for this
  /// worker, and an epoch above 2^32 - 1; the place stays.
  void resume(std::size_t epoch, std::size_t step);
  struct Length {
    std::size_t steps = 0;
    std::size_t samples = 0;
  };
  /// Of the epoch under way, for this worker. Errors: ConfigError, where samples are leased: the
  /// other workers then decide with it.
  Length length() const;
  /// Whole epochs, and steps in the epoch under way, so far.
  std::size_t epoch() const;
  std::size_t step() const;

 private:
  std::shared_ptr<Order> order_;  ///< of the copies of this share, as libtorch's loaders make them
};

/// The scheme of a training.
struct LoopScheme {
  std::string_view name;
  SchemeTraits traits;
  std::map<std::string, std::string> options;  ///< all that were given, the scheme among them
};

/// A worker's membership in a job of programs, whose collectives are those of a `LoopGroup`. A
/// process without a launcher is a job of one worker: it opens no connection and starts no thread.
///
/// The library forks nothing, installs no signal handler, writes nothing to the terminal, and never
/// ends the process.
///
/// Thread: one at a time; a second one is refused. So is a process that this one forks, where the
///         objects of the job do nothing when they are destroyed.
/// Errors: all derive from `syncopate::Error`. ConfigError: options that contradict each other, or
///         that differ between programs.
class LoopJob {
 public:
  /// Waits until every program of the job has come. Errors: also those of the transport.
  explicit LoopJob(const InitOptions& options);
  /// Leaves the job, once its training has ended; what its groups have under way ends with an
  /// error. Worker 0 of a job that another launcher than `syncopate run` has started coordinates
  /// it, and waits until the others have left.
  ~LoopJob();
  LoopJob(LoopJob&&) noexcept;
  LoopJob& operator=(LoopJob&&) noexcept;

  std::uint32_t rank() const;
  std::uint32_t size() const;
  std::uint32_t local_rank() const;
  /// True where no launcher has started this process.
  bool is_alone() const;

  /// This worker's share of a dataset of `samples` samples, in steps of which all workers together
  /// take `batch_size` samples. Training counts epochs and weighs steps by these sizes.
  LoopShare share(std::size_t samples, std::size_t batch_size);

  /// The scheme that a training with these options has, together with those of `InitOptions` and
  /// of the command line. Errors: ConfigError.
  LoopScheme scheme_of(const std::string& scheme,
                       const std::map<std::string, std::string>& options) const;

  /// Before a program changes its model for a training. Errors: ConfigError, where the job has one.
  void expect_untrained() const;

  class Member;
  const std::shared_ptr<Member>& member() const { return member_; }

 private:
  std::shared_ptr<Member> member_;  ///< shared with the training and the groups of this job
};

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
  /// Finishes.
  ~LoopTraining();
  LoopTraining(const LoopTraining&) = delete;
  LoopTraining& operator=(const LoopTraining&) = delete;

  /// True where a parameter server takes the optimizer's steps.
  bool server_steps() const;
  /// True where a parameter server takes steps of the whole model by a rule that moves parameters
  /// whose gradient is zero, such as one with a momentum or a weight decay.
  bool server_moves_all() const;
  /// True where a step takes the mean gradient of all workers, who take all steps together.
  bool shares_gradients() const;
  /// True where gradients leave during the backward pass, as far as the program reports them:
  /// `ssgd` with option `overlap` `on`.
  bool overlaps() const;
  /// Samples of a usual step.
  std::uint32_t batch_size() const;

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

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace syncopate
