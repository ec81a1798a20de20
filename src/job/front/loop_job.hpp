#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "base/time.hpp"
#include "job/launch/loop_config.hpp"
#include "scheme/scheme_spec.hpp"

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
  bool encrypted = false;    ///< the key is one that the user has given to all hosts
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

  /// Samples of the next step of this worker.
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
  /// The number of the host of the worker `rank`, in any numbering. Errors: ConfigError.
  std::uint32_t host_of(std::uint32_t rank) const;
  /// True where no launcher has started this process.
  bool is_alone() const;

  /// This worker's share of a dataset of `samples` samples, in steps of which all workers together
  /// take `batch_size` samples. Training counts epochs and weighs steps by these sizes.
  LoopShare share(std::size_t samples, std::size_t batch_size, Division division);

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

}  // namespace syncopate
