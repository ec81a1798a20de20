#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "collective/summable.hpp"
#include "train/loop_replica.hpp"

/// A job whose workers train by loops of their own programs, without libtorch;
/// `syncopate/torch.hpp` has the same for libtorch's modules.
namespace syncopate {

/// How a process finds the others of its job. Launchers pass it by environment variables.
struct JobEntry {
  std::string coordinator;  ///< HOST:PORT
  std::string key;          ///< the secret of the job
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t local_rank = 0;  ///< among the processes of this host
};

/// What a program says when it joins. The command line of `syncopate run` may say it instead; both
/// may say the same, but not contradict each other.
struct InitOptions {
  std::string scheme = {};  ///< empty: that of the command line, else `ssgd`
  /// Options of `syncopate run`, by their names: {"local-steps", "4"}.
  std::map<std::string, std::string> options = {};
  /// Empty: from the environment; where that has none, the process is a job by itself.
  std::optional<JobEntry> entry = {};
};

/// The order in which one worker trains on the samples of a dataset: in each epoch all workers
/// together take every sample once, in an order that follows from the job's seed.
///
/// Thread: one.
class LoopShare {
 public:
  class Order;
  explicit LoopShare(std::shared_ptr<Order> order);

  /// Samples of a step of this worker.
  std::size_t step_size() const;
  /// The indices of the next step, in order; empty at the end of an epoch. The call after that
  /// begins the next epoch.
  std::vector<std::size_t> next();
  /// Begins the next epoch, unless this one has not begun.
  void next_epoch();
  /// Whole epochs, and steps in the epoch under way, so far.
  std::size_t epoch() const;
  std::size_t step() const;

 private:
  std::shared_ptr<Order> order_;  ///< of the copies of this share, as libtorch's loaders make them
};

class PendingOperation;
class ProgramNode;

/// A collective that goes on while its caller does something else.
///
/// Thread: any.
class CollectiveWork {
 public:
  /// One that has ended already.
  CollectiveWork() = default;
  explicit CollectiveWork(std::shared_ptr<PendingOperation> operation)
      : operation_(std::move(operation)) {}

  bool done() const;
  /// Returns once the collective has ended. Errors: those of the collective, in every call;
  /// Cancelled, where the program has left the job before it began.
  void wait();

 private:
  std::shared_ptr<PendingOperation> operation_;  ///< null: it has ended
};

/// A worker's membership in a job of programs. A process without a launcher is a job of one worker:
/// it opens no connection and starts no thread, and its collectives do nothing. Otherwise the first
/// asynchronous collective starts a thread.
///
/// The library forks nothing, installs no signal handler, writes nothing to the terminal, and never
/// ends the process.
///
/// Thread: one at a time; a second one is refused. So is a process that this one forks, where the
///         objects of the job do nothing when they are destroyed.
/// Errors: all derive from `syncopate::Error`. ConfigError: options that contradict each other, or
///         that differ between programs. Collectives: PeerLost, TimedOut (another program has
///         ended, or has not come within half an hour).
class LoopJob {
 public:
  /// Waits until every program of the job has come. Errors: also those of the transport.
  explicit LoopJob(const InitOptions& options);
  /// Leaves the job. Worker 0 of a job that another launcher than `syncopate run` has started
  /// coordinates it, and waits until the others have left.
  ~LoopJob();
  LoopJob(LoopJob&&) noexcept;
  LoopJob& operator=(LoopJob&&) noexcept;

  std::uint32_t rank() const;
  std::uint32_t size() const;
  std::uint32_t local_rank() const;

  // Collectives: every worker calls them, in the same order, with the same types and lengths. Those
  // of `_async` return at once; they are carried out one after the other, in the order of the
  // calls, and what they read and write stays as it is until they have ended.

  /// Replaces `values` by their sum over all workers: the same bits on each. Integers wrap around;
  /// values of bfloat16 are added in float32.
  void allreduce(Summable values);
  CollectiveWork allreduce_async(Summable values);
  /// Replaces `bytes` by those of worker 0.
  void broadcast(std::span<std::byte> bytes);
  CollectiveWork broadcast_async(std::span<std::byte> bytes);
  /// Block r of `all` becomes what worker r passes as `mine`. For small blocks.
  /// Errors: ConfigError, where `all` has another length than size() blocks.
  void allgather(std::span<const std::byte> mine, std::span<std::byte> all);
  CollectiveWork allgather_async(std::span<const std::byte> mine, std::span<std::byte> all);
  /// Returns when every worker has called it.
  void barrier();
  CollectiveWork barrier_async();

  /// This worker's share of a dataset of `samples` samples, in steps of which all workers together
  /// take `batch_size` samples. Training counts epochs and weighs steps by these sizes.
  LoopShare share(std::size_t samples, std::size_t batch_size);

  class Member;
  const std::shared_ptr<Member>& member() const { return member_; }

 private:
  using Collective = std::function<void(ProgramNode& node)>;
  void run(const Collective& collective);
  CollectiveWork start(Collective collective);
  Collective gathering(std::span<const std::byte> mine, std::span<std::byte> all) const;

  std::shared_ptr<Member> member_;  ///< shared with the training of this job
};

/// What the job needs to know of a program's optimizer.
struct LoopOptimizer {
  double learning_rate = 0;
  /// Options of `syncopate train` that describe its rule: {"optimizer", "momentum"}, {"momentum",
  /// "0.9"}. A parameter server that keeps the model applies it.
  std::map<std::string, std::string> rule = {};
  std::string has_no_rule = {};  ///< why a server cannot apply it; empty: it can
};

/// The training of one replica by a program's own loop: `LoopReplica` holds the gradients, and the
/// job's scheme decides what happens to them.
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
  };

  /// Waits until every worker has made one, and gives all replicas the same parameters. Once for a
  /// job of more than one process. Errors: ConfigError; the error that ended the job.
  LoopTraining(const LoopJob& job, std::unique_ptr<LoopReplica> replica, const Options& options);
  /// Finishes. While an exception flies, ends the job for all workers instead.
  ~LoopTraining();
  LoopTraining(const LoopTraining&) = delete;
  LoopTraining& operator=(const LoopTraining&) = delete;

  /// True where a parameter server takes the optimizer's steps.
  bool server_steps() const;
  /// Samples of a usual step.
  std::uint32_t batch_size() const;

  /// The replica holds the mean gradient of `samples` samples. Returns when it holds the parameters
  /// for the next step. Errors: the error that ended the job; Cancelled, when the user has ended
  /// it; ConfigError, after `finish`.
  void step(std::uint32_t samples);

  /// The loop takes no further step. In a synchronous job it waits for the loops of all workers.
  /// Errors: the error that ended the job.
  void finish();

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace syncopate
