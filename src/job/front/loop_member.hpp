#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "job/front/loop_job.hpp"
#include "job/front/sample_source.hpp"
#include "job/launch/known_coordinator.hpp"
#include "job/launch/loop_config.hpp"
#include "job/launch/program_environment.hpp"
#include "job/program/host_thread.hpp"
#include "job/program/program_node.hpp"
#include "train/program_waits.hpp"

namespace syncopate {

/// The options of a program, the scheme among them. Errors: ConfigError, for two schemes.
GivenOptions given_in(const std::string& scheme, GivenOptions options);

/// Leaves an object of a job alone, for good: in a forked process its destructor would wait for
/// threads that are not there.
template <class Pointer>
void abandon(Pointer pointer) {
  static_cast<void>(std::make_unique<Pointer>(std::move(pointer)).release());
}

/// The sizes of a worker's share of a dataset.
struct ShareSizes {
  std::uint64_t samples = 0;     ///< in the dataset
  std::uint32_t batch_size = 0;  ///< of this worker: of one or more steps; by speed: of all
  std::uint32_t step_size = 0;   ///< by speed: before the first step
  Division division = Division::equal;
};

/// This process's side of a job of programs.
class LoopJob::Member : public std::enable_shared_from_this<LoopJob::Member> {
 public:
  /// Errors: those of `LoopJob`.
  explicit Member(const InitOptions& options);

  std::uint32_t rank() const { return launch_ ? launch_->rank : 0; }
  std::uint32_t size() const { return launch_ ? launch_->size : 1; }
  std::uint32_t local_rank() const { return launch_ ? launch_->local_rank : 0; }
  /// True where no launcher has started this process: there is no coordinator.
  bool is_alone() const { return !node_; }
  ProgramNode& node();

  /// Of the command line and of `init`.
  const GivenOptions& given() const { return given_; }
  /// These options of a training, together with those of `given`. Errors: ConfigError.
  GivenOptions given_with(const std::string& scheme, const GivenOptions& options) const;
  /// `batch_size`: of this worker; by speed: of all workers together. Errors: ConfigError.
  std::shared_ptr<LoopShare::Order> share(std::uint64_t samples, std::uint32_t batch_size,
                                          Division division);
  /// The sizes of the share by speed. Without one, those of the first share in use, because later
  /// ones may serve tests; if none is in use, those of the last share. Empty before the first.
  std::optional<ShareSizes> sizes() const;

  /// The samples that the training wants in this worker's next step; 0: none has begun. From any
  /// thread.
  std::uint32_t next_samples() const { return *next_samples_; }
  /// `parts`: of all workers in that step, by rank; empty: the scheme divides no steps.
  void want_samples(std::uint32_t samples, std::span<const std::uint32_t> parts);
  /// The last such parts; before the training, those by the cluster file, or equal ones. From any
  /// thread.
  std::vector<std::uint32_t> wanted_parts() const;

  /// Errors: ConfigError, at the second call.
  void begin_training();
  /// Errors: ConfigError, after `begin_training`.
  void expect_untrained() const;
  /// True from `begin_training` on: the job ends for all where one worker does.
  bool trains() const { return trained_; }

  /// A call of the program, while it lasts. Errors: ConfigError, for a second thread at the same
  /// time, and in a process that this one has forked.
  class Use {
   public:
    explicit Use(Member& member);
    ~Use() { member_.in_use_by_ = std::thread::id(); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Member& member_;
  };
  /// False in a process that the job's own has forked: there its threads are missing.
  bool is_of_this_process() const;
  /// Errors: ConfigError, where it is false.
  void expect_own_process() const;

  /// What this program waits for outside its training. Of the objects of the job, some outlive it.
  const std::shared_ptr<ProgramWaits>& waits() const { return waits_; }

  /// A group of this job's workers is open, and uses the node.
  void opened_group() { ++groups_; }
  void closed_group() { --groups_; }
  /// Leaves the job, where groups are open that would keep it: ends what they have under way, and
  /// waits, on worker 0 where it hosts the others, until these have left.
  void leave_groups();
  bool has_left() const { return left_; }

 private:
  std::unique_ptr<SampleSource> source(const JobPlan& plan, const ShareSizes& sizes);
  void expect_global_batch(std::uint64_t samples, std::uint32_t global_batch) const;
  ProgramLaunch launch_by(const Launch& launcher);
  void meet_between_hosts(const KnownCoordinator& known, ProgramLaunch& launch);
  void meet_on_this_host(const Launch& launcher, ProgramLaunch& launch);

  std::unique_ptr<ProgramHostThread> host_;  ///< first: it leaves last; of worker 0, see there
  std::optional<ProgramLaunch> launch_;
  GivenOptions given_;
  struct Share {
    std::weak_ptr<LoopShare::Order> order;
    ShareSizes sizes;
  };
  /// The one in use; null: there is none.
  const Share* share_by_speed() const;
  std::vector<Share> shares_;  ///< of all calls of `share`
  using NextSamples = std::atomic<std::uint32_t>;
  const std::shared_ptr<NextSamples> next_samples_ = std::make_shared<NextSamples>(0);
  mutable Mutex mutex_;
  std::vector<std::uint32_t> wanted_parts_ GUARDED_BY(mutex_);
  std::atomic<bool> trained_ = false;
  std::atomic<std::thread::id> in_use_by_{};  ///< none: no thread
  std::atomic<int> groups_ = 0;               ///< open ones
  std::atomic<bool> left_ = false;
  const std::shared_ptr<ProgramWaits> waits_ = std::make_shared<ProgramWaits>();
  const std::uint32_t process_;
  std::optional<ProgramNode> node_;  ///< last: it leaves first
};

/// The job of a source of samples that asks the coordinator. Errors: ConfigError, once the program
/// has left the job, and in a forked process.
std::shared_ptr<LoopJob::Member> to_member(const std::weak_ptr<LoopJob::Member>& job);

/// The order of one worker's samples, epoch by epoch.
class LoopShare::Order {
 public:
  /// The samples of the next step; 0: `step_size`.
  using NextSamples = std::shared_ptr<const std::atomic<std::uint32_t>>;

  /// `next_samples`: null if all steps have `step_size` samples.
  Order(std::unique_ptr<SampleSource> source, std::size_t step_size, NextSamples next_samples)
      : source_(std::move(source)), step_size_(step_size), next_samples_(std::move(next_samples)) {}

  std::size_t step_size() const;
  std::vector<std::size_t> next();
  void next_epoch();
  void resume(std::size_t epoch, std::size_t step);
  Length length() const;
  std::size_t epoch() const { return epoch_; }
  std::size_t step() const { return step_; }

 private:
  std::optional<Length> length_of(std::size_t epoch) const;
  void expect_place(std::size_t epoch, std::size_t step) const;
  std::vector<std::size_t> take(std::size_t samples);

  std::unique_ptr<SampleSource> source_;
  std::size_t step_size_;
  NextSamples next_samples_;
  std::size_t epoch_ = 0;
  std::size_t step_ = 0;                 ///< taken in this epoch
  std::span<const std::uint32_t> left_;  ///< samples of the source that no step has taken
  bool ended_ = false;                   ///< the epoch
  bool resumed_ = false;                 ///< and no step has been asked for since
};

}  // namespace syncopate
