#pragma once

#include <syncopate.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <syncopate/error.hpp>
#include <syncopate/group.hpp>
#include <syncopate/interruption.hpp>
#include <syncopate/log.hpp>
#include <syncopate/options.hpp>
#include <utility>
#include <vector>

/// A job whose workers train by loops of their own programs, without libtorch;
/// `syncopate/torch.hpp` has the same for libtorch's modules. C++17, over `syncopate.h`.
namespace syncopate {
inline namespace v0 {

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
  Options options = {};
  /// Empty: from the environment; where that has none, the process is a job by itself.
  std::optional<JobEntry> entry = {};
  /// How long a worker waits for others in collectives of all workers at most; 0: half an hour.
  double wait_seconds = 0;
};

/// The order in which one worker trains on the samples of a dataset: in each epoch all workers
/// together take every sample once. With option `data-order` `fixed` the part of each worker
/// follows from the job's seed; with `leased`, which schemes whose workers take different numbers
/// of steps have by default, faster workers take more. Copies go on together, as libtorch's loaders
/// need them.
///
/// Thread: that of the job.
class Share {
 public:
  /// That of the C interface, which this closes.
  explicit Share(syncopate_share* share) : share_(share, syncopate_share_close) {}

  /// Samples of a step of this worker.
  std::size_t step_size() const { return syncopate_share_step_size(handle()); }
  /// The indices of the next step, in order; empty at the end of an epoch. The call after that
  /// gives the first step of the next epoch.
  std::vector<std::size_t> next() {
    const std::uint64_t* indices = nullptr;
    std::size_t count = 0;
    detail::check(syncopate_share_next(handle(), &indices, &count));
    std::vector<std::size_t> step(indices, indices + count);
    if (step.empty()) {
      next_epoch();  // so that the place of every copy is the beginning of the next one
    }
    return step;
  }
  /// Begins the next epoch, unless this one has not begun, or goes on by `resume` with the next
  /// step.
  void next_epoch() { detail::check(syncopate_share_next_epoch(handle())); }
  /// Goes on behind the first `step` steps of `epoch`, which an earlier job has taken. Where
  /// samples are leased these are not known, and the epoch begins again. Errors: ConfigError, for
  /// more steps than this worker has in the epoch, and an epoch above 2^32 - 1.
  void resume(std::size_t epoch, std::size_t step) {
    detail::check(syncopate_share_resume(handle(), epoch, step));
  }
  /// The steps of this worker in the epoch under way. Errors: ConfigError, where samples are
  /// leased: the other workers then decide with it.
  std::size_t steps() const {
    std::uint64_t steps = 0;
    detail::check(syncopate_share_length(share_.get(), &steps, nullptr));
    return steps;
  }
  /// Whole epochs so far.
  std::size_t epoch() const { return syncopate_share_epoch(handle()); }
  /// Steps so far in the epoch under way; 0 at the end of one, where the next is under way.
  std::size_t step() const { return syncopate_share_step(handle()); }

 private:
  syncopate_share* handle() const { return detail::handle_of(share_, "share"); }

  std::shared_ptr<syncopate_share> share_;
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
class Job {
 public:
  /// Waits until every program of the job has come. Errors: also those of the transport.
  explicit Job(const InitOptions& options = {});
  // The end of its life leaves the job. Worker 0 of a job that another launcher than `syncopate
  // run` has started coordinates it, and waits until the others have left.

  /// The membership of another object, which has none afterwards.
  Job(Job&&) noexcept = default;
  /// The same; the membership of this object so far ends.
  Job& operator=(Job&&) noexcept = default;

  /// The rank of this worker, from 0 on.
  std::uint32_t rank() const { return syncopate_rank(handle()); }
  /// The number of workers.
  std::uint32_t size() const { return syncopate_worker_count(handle()); }
  /// The rank of this worker among those of its host.
  std::uint32_t local_rank() const { return syncopate_local_rank(handle()); }

  // Collectives of all workers, as those of `Group`: with sums and worker 0 where that has a
  // choice.

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
  /// The same of `count` values of a type of the C interface.
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
  /// The same of `bytes` bytes.
  void broadcast(void* values, std::size_t bytes) { everyone().broadcast(values, bytes); }
  /// As `broadcast`, but returns at once.
  CollectiveWork broadcast_async(void* values, std::size_t bytes) {
    return everyone().broadcast_async(values, bytes);
  }
  /// Block r of `all`, of `bytes` bytes, becomes what worker r passes as `mine`.
  void allgather(const void* mine, std::size_t bytes, void* all) {
    everyone().allgather(mine, bytes, all);
  }
  /// As `allgather`, but returns at once.
  CollectiveWork allgather_async(const void* mine, std::size_t bytes, void* all) {
    return everyone().allgather_async(mine, bytes, all);
  }
  /// The values of all workers, by rank. Each passes as many.
  template <class Values>
  auto allgather(const Values& mine) {
    return everyone().allgather(mine);
  }
  /// Returns when every worker has called it.
  void barrier() { everyone().barrier(); }
  /// As `barrier`, but returns at once; the work ends when every worker has called it.
  CollectiveWork barrier_async() { return everyone().barrier_async(); }

  /// All workers, as long as the job.
  Group everyone() const { return Group(syncopate_everyone(handle()), Group::of_the_job); }
  /// Some workers, by their ranks in the job, this one's among them; member i has rank i in the
  /// group. All of them call it, with the same ranks; where two groups have two members in common,
  /// these open them in the same order.
  /// `wait_seconds`: how long a member waits for others at most; 0: half an hour.
  Group open_group(const std::vector<std::uint32_t>& ranks, double wait_seconds = 0) {
    syncopate_group_options options{};
    options.size = sizeof options;
    const std::uint32_t none = 0;  // NULL, as the data of an empty vector, would be all workers
    options.ranks = ranks.empty() ? &none : ranks.data();
    options.rank_count = ranks.size();
    options.wait_seconds = wait_seconds;
    syncopate_group* group = nullptr;
    detail::check(syncopate_group_open(handle(), &options, &group));
    return Group(group);
  }

  /// This worker's share of a dataset of `samples` samples, in steps of which all workers together
  /// take `batch_size` samples. Training counts epochs and weighs steps by these sizes.
  Share share(std::size_t samples, std::size_t batch_size) {
    syncopate_share* share = nullptr;
    detail::check(syncopate_share_open(handle(), samples, batch_size, &share));
    Share own(share);
    usual_step_ = static_cast<std::uint32_t>(own.step_size());
    return own;
  }
  /// Samples of a step of this worker, as `share` has last been called; 0 before.
  std::uint32_t usual_step() const { return usual_step_; }

  /// Before a program changes its model for a training. Errors: ConfigError, where the job has one.
  void expect_untrained() const;
  /// A training by a scheme of the program's own begins. Returns all workers; as long as the result
  /// lives, the program stays in the job. Errors: as `expect_untrained`.
  Group begin_own_training() const;

  /// The job of the C interface. Errors: ConfigError, for a job that was moved from, as in every
  /// call of one.
  syncopate_job* handle() const { return detail::handle_of(membership_, "job")->job; }

 private:
  /// Leaves the job at its end.
  struct Membership {
    explicit Membership(syncopate_job* joined) : job(joined) {}
    ~Membership() { syncopate_leave(job); }
    Membership(const Membership&) = delete;
    Membership& operator=(const Membership&) = delete;

    syncopate_job* job;
    bool has_own_training = false;  ///< which the library does not know
  };

  std::shared_ptr<Membership> membership_;  ///< shared with a training by a scheme of one's own
  std::uint32_t usual_step_ = 0;
};

/// Joins the job that a launcher (`syncopate run`, mpirun, srun, torchrun) has started this process
/// for, as one of its workers. Without a launcher the process is a job of one worker.
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
