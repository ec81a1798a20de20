#pragma once

#include <syncopate.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <syncopate/error.hpp>
#include <syncopate/group.hpp>
#include <syncopate/interruption.hpp>
#include <syncopate/log.hpp>
#include <syncopate/options.hpp>
#include <utility>
#include <vector>

/// A job whose workers train in their programs' own loops, without libtorch; `syncopate/torch.hpp`
/// is the same for libtorch's modules. C++17, over `syncopate.h`.
namespace syncopate {
inline namespace v0 {

/// Data by which a process finds the other processes of its job. Launchers pass it in environment
/// variables.
struct JobEntry {
  std::string coordinator;  ///< HOST:PORT
  std::string key;          ///< the secret of the job
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t local_rank = 0;  ///< among the processes of this host
  /// HOST:PORT at which this process listens; port 0: any free port.
  std::string address = "127.0.0.1:0";
  bool unencrypted = false;  ///< allows addresses beyond loopback: the network is trusted
  /// A file with a key that all hosts have (`syncopate key new`): it encrypts the job, in place of
  /// `key`, and addresses may be beyond loopback.
  std::string key_file = {};
};

/// Settings with which a program joins. The command line of `syncopate run` may give them instead;
/// both may give the same ones, but must not contradict each other.
struct InitOptions {
  std::string scheme = {};  ///< empty: that of the command line, else `ssgd`
  Options options = {};
  /// Empty: from the environment; if that has none, the process is a job of its own.
  std::optional<JobEntry> entry = {};
  /// Longest wait for other workers in collectives of all workers; 0: half an hour.
  double wait_seconds = 0;
};

/// The order in which one worker trains on the samples of a dataset: in each epoch all workers
/// together take every sample once. With option `data-order` `fixed`, each worker's part follows
/// from the job's seed. With `leased`, the default of schemes whose workers take different numbers
/// of steps, faster workers take more samples. Copies share one position, as libtorch's loaders
/// need.
///
/// Thread: that of the job.
class Share {
 public:
  /// Takes ownership of a share of the C interface.
  explicit Share(syncopate_share* share) : share_(share, syncopate_share_close) {}

  /// Samples in a step of this worker.
  std::size_t step_size() const { return syncopate_share_step_size(handle()); }
  /// Returns the indices of the next step, in order; empty at the end of an epoch. The call after
  /// that returns the first step of the next epoch.
  std::vector<std::size_t> next() {
    const std::uint64_t* indices = nullptr;
    std::size_t count = 0;
    detail::check(syncopate_share_next(handle(), &indices, &count));
    std::vector<std::size_t> step(indices, indices + count);
    if (step.empty()) {
      next_epoch();  // moves every copy to the beginning of the next epoch
    }
    return step;
  }
  /// Begins the next epoch. Has no effect if the current epoch has not begun, or if `resume` was
  /// just called.
  void next_epoch() { detail::check(syncopate_share_next_epoch(handle())); }
  /// Continues after the first `step` steps of `epoch`, which an earlier job has taken. If samples
  /// are leased, these steps are not known, and the epoch restarts. Errors: ConfigError for more
  /// steps than this worker has in the epoch, and for an epoch above 2^32 - 1.
  void resume(std::size_t epoch, std::size_t step) {
    detail::check(syncopate_share_resume(handle(), epoch, step));
  }
  /// The steps of this worker in the current epoch. Errors: ConfigError if samples are leased,
  /// because the number then also depends on the other workers.
  std::size_t steps() const {
    std::uint64_t steps = 0;
    detail::check(syncopate_share_length(share_.get(), &steps, nullptr));
    return steps;
  }
  /// Completed epochs so far.
  std::size_t epoch() const { return syncopate_share_epoch(handle()); }
  /// Steps so far in the current epoch; 0 at the end of an epoch, when the next one is current.
  std::size_t step() const { return syncopate_share_step(handle()); }

 private:
  syncopate_share* handle() const { return detail::handle_of(share_, "share"); }

  std::shared_ptr<syncopate_share> share_;
};

/// A worker's membership in a job. A process without a launcher is a job of one worker: it opens no
/// connection and starts no thread, and its collectives have no effect. Otherwise the first
/// asynchronous collective starts a thread.
///
/// The library forks no process, installs no signal handler, writes nothing to the terminal, and
/// never ends the process.
///
/// Thread: one at a time; calls of a second one fail. So do calls of a forked process, in which
///         destructors of the job's objects have no effect.
/// Errors: all derive from `syncopate::Error`. ConfigError: options that contradict each other or
///         differ between programs. Collectives: PeerLost and TimedOut if another program has ended
///         or has not arrived within half an hour.
class Job {
 public:
  /// Waits until every program of the job has joined. Errors: also those of the transport.
  explicit Job(const InitOptions& options = {});
  // The destructor leaves the job. If another launcher than `syncopate run` has started the job,
  // worker 0 coordinates it and waits until the others have left.

  /// Takes the membership of another object, which has none afterwards.
  Job(Job&&) noexcept = default;
  /// Takes the membership of another object; the current membership of this object ends.
  Job& operator=(Job&&) noexcept = default;

  /// The rank of this worker, from 0 on.
  std::uint32_t rank() const { return syncopate_rank(handle()); }
  /// The number of workers.
  std::uint32_t size() const { return syncopate_worker_count(handle()); }
  /// The rank of this worker among the workers of its host.
  std::uint32_t local_rank() const { return syncopate_local_rank(handle()); }
  /// A number that workers have in common if they are on one host. Errors: ConfigError.
  std::uint32_t host_of(std::uint32_t rank) const {
    if (rank >= size()) {
      throw ConfigError("no worker has rank " + std::to_string(rank));
    }
    return syncopate_host_of(handle(), rank);
  }
  /// The ranks of the workers that take part in `Training::Sums`: the first of each host, or all
  /// workers if they are on one host.
  std::vector<std::uint32_t> ranks_of_sums() const {
    std::set<std::uint32_t> hosts;
    std::vector<std::uint32_t> firsts;
    std::vector<std::uint32_t> all;
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
      all.push_back(rank);
      if (hosts.insert(host_of(rank)).second) {
        firsts.push_back(rank);
      }
    }
    return firsts.size() == 1 ? all : firsts;
  }

  // Collectives of all workers, as those of `Group`. The operation is the sum and the root is
  // worker 0.

  /// As `Group::allreduce`, the sum over all workers.
  template <class Values>
  void allreduce(Values&& values) {
    everyone().allreduce(values);
  }
  /// As `allreduce`, but returns at once.
  template <class Values>
  CollectiveWork allreduce_async(Values&& values) {
    return everyone().allreduce_async(values);
  }
  /// As `allreduce`, for `count` values of a type of the C interface.
  void allreduce(void* values, std::size_t count, syncopate_type type) {
    everyone().allreduce(values, count, type);
  }
  /// As `allreduce`, but returns at once.
  CollectiveWork allreduce_async(void* values, std::size_t count, syncopate_type type) {
    return everyone().allreduce_async(values, count, type);
  }
  /// As `Group::broadcast`, from worker 0.
  template <class Values>
  void broadcast(Values&& values) {
    everyone().broadcast(values);
  }
  /// As `broadcast`, but returns at once.
  template <class Values>
  CollectiveWork broadcast_async(Values&& values) {
    return everyone().broadcast_async(values);
  }
  /// As `broadcast`, for `bytes` bytes.
  void broadcast(void* values, std::size_t bytes) { everyone().broadcast(values, bytes); }
  /// As `broadcast`, but returns at once.
  CollectiveWork broadcast_async(void* values, std::size_t bytes) {
    return everyone().broadcast_async(values, bytes);
  }
  /// Sets block r of `all`, `bytes` bytes, to the `mine` of worker r.
  void allgather(const void* mine, std::size_t bytes, void* all) {
    everyone().allgather(mine, bytes, all);
  }
  /// As `allgather`, but returns at once.
  CollectiveWork allgather_async(const void* mine, std::size_t bytes, void* all) {
    return everyone().allgather_async(mine, bytes, all);
  }
  /// Returns the values of all workers, by rank. Each worker passes the same number of values.
  template <class Values>
  auto allgather(const Values& mine) {
    return everyone().allgather(mine);
  }
  /// Returns once every worker has called it.
  void barrier() { everyone().barrier(); }
  /// As `barrier`, but returns at once; the work ends once every worker has called it.
  CollectiveWork barrier_async() { return everyone().barrier_async(); }

  /// The group of all workers; it is valid as long as the job.
  Group everyone() const { return Group(syncopate_everyone(handle()), Group::of_the_job); }
  /// Opens a group of some workers, given by their ranks in the job; this worker must be one of
  /// them. Member i has rank i in the group. All members call it with the same ranks; if two groups
  /// have two members in common, these open the groups in the same order.
  /// `wait_seconds`: longest wait of a member for others; 0: half an hour.
  Group open_group(const std::vector<std::uint32_t>& ranks, double wait_seconds = 0) {
    syncopate_group_options options{};
    options.size = sizeof options;
    const std::uint32_t none = 0;  // an empty vector may have NULL data: all workers
    options.ranks = ranks.empty() ? &none : ranks.data();
    options.rank_count = ranks.size();
    options.wait_seconds = wait_seconds;
    syncopate_group* group = nullptr;
    detail::check(syncopate_group_open(handle(), &options, &group));
    return Group(group);
  }

  /// Opens this worker's share of a dataset of `samples` samples, in steps of `batch_size` samples
  /// of all workers together. Training counts epochs and weights steps by these sizes.
  Share share(std::size_t samples, std::size_t batch_size) {
    syncopate_share* share = nullptr;
    detail::check(syncopate_share_open(handle(), samples, batch_size, &share));
    Share own(share);
    usual_step_ = static_cast<std::uint32_t>(own.step_size());
    return own;
  }
  /// As `share`, but the workers divide the `global_batch` samples of a step, or of a round of
  /// esync, by the measured speeds of their devices. A step passes the number of its samples.
  /// Schemes other than ssgd and esync divide it once: by the speeds in a cluster file, or equally.
  /// Errors: ConfigError for a batch of fewer than two samples for each worker or of more than the
  /// dataset has, for a second such share, and under esync if data-order is fixed.
  Share share_by_speed(std::size_t samples, std::size_t global_batch) {
    syncopate_share* share = nullptr;
    detail::check(syncopate_share_open_by_speed(handle(), samples, global_batch, &share));
    return Share(share);
  }
  /// Samples in a step of this worker, from the last call of `share`; 0 before.
  std::uint32_t usual_step() const { return usual_step_; }

  /// Checks that a training may start, before the program changes its model. Errors: ConfigError if
  /// the job has a training already.
  void expect_untrained() const;
  /// Begins a training with the program's own scheme and returns the group of all workers; the
  /// program stays in the job while the result lives. Errors: those of `expect_untrained`.
  Group begin_own_training() const;

  /// The job of the C interface. Errors: ConfigError if this job was moved from, as in every other
  /// call.
  syncopate_job* handle() const { return detail::handle_of(membership_, "job")->job; }

 private:
  /// Leaves the job when destroyed.
  struct Membership {
    explicit Membership(syncopate_job* joined) : job(joined) {}
    ~Membership() { syncopate_leave(job); }
    Membership(const Membership&) = delete;
    Membership& operator=(const Membership&) = delete;

    syncopate_job* job;
    bool has_own_training = false;  ///< unknown to the library
  };

  std::shared_ptr<Membership> membership_;  ///< shared with a training by the program's own scheme
  std::uint32_t usual_step_ = 0;
};

/// Joins the job for which a launcher (`syncopate run`, mpirun, srun, torchrun) has started this
/// process, as one of its workers. Without a launcher the process is a job of one worker.
inline Job join(const InitOptions& options = {}) {
  return Job(options);
}

inline Job::Job(const InitOptions& options) {
  const detail::OptionList list(options.options);
  syncopate_entry entry{};
  if (options.entry) {
    entry.size = sizeof entry;
    entry.coordinator = options.entry->coordinator.c_str();
    entry.key = options.entry->key.c_str();
    entry.rank = options.entry->rank;
    entry.worker_count = options.entry->size;
    entry.local_rank = options.entry->local_rank;
    entry.address = options.entry->address.c_str();
    entry.unencrypted = options.entry->unencrypted ? 1 : 0;
    entry.key_file = detail::text_or_null(options.entry->key_file);
  }
  syncopate_join_options joining{};
  joining.size = sizeof joining;
  joining.scheme = detail::text_or_null(options.scheme);
  joining.options = list.data();
  joining.option_count = list.size();
  joining.entry = options.entry ? &entry : nullptr;
  joining.wait_seconds = options.wait_seconds;
  syncopate_job* job = nullptr;
  detail::check(syncopate_join(&joining, &job));
  membership_ = std::make_shared<Membership>(job);
}

inline void Job::expect_untrained() const {
  detail::check(syncopate_training_may_start(handle()));
  if (membership_->has_own_training) {
    throw ConfigError(
        "this job has trained already, or trains: a job has one optimizer. Put all networks into "
        "one module, and all of its parameters into the groups of one optimizer");
  }
}

inline Group Job::begin_own_training() const {
  expect_untrained();
  membership_->has_own_training = true;
  return Group(std::shared_ptr<syncopate_group>(membership_, syncopate_everyone(handle())));
}

}  // namespace v0
}  // namespace syncopate
