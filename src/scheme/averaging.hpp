#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collective/allreduce.hpp"
#include "collective/group.hpp"
#include "config/option_values.hpp"
#include "runtime/world.hpp"
#include "scheme/bucket_reducer.hpp"
#include "scheme/buffer_mean.hpp"
#include "scheme/recovery.hpp"
#include "scheme/round_book.hpp"
#include "scheme/round_reduction.hpp"
#include "scheme/scheme.hpp"
#include "scheme/step_info_exchange.hpp"
#include "server/server_client.hpp"

namespace syncopate {

/// The weights of workers in a mean over them.
enum class Weights {
  samples,  ///< Σ n_i x_i / N: for gradients, the gradient of the union of the batches
  uniform,  ///< the plain mean over workers with samples: correct only where all n_i are equal
  data,     ///< Σ p_i x_i over workers with samples, p_i the worker's share of the training data
};

constexpr auto names_of(Weights) {
  return std::to_array<Named<Weights>>(
      {{"samples", Weights::samples}, {"uniform", Weights::uniform}, {"data", Weights::data}});
}

/// The weighted mean of values over all workers, in synchronization rounds.
///
/// A round has two phases. First all workers exchange step infos: they learn the total weight, and
/// agree on stopping, evaluation and checkpoints. Then the values are reduced, by an allreduce or
/// by a server that sums pushes. Without a server, a group that listens for failures finishes a
/// round without the failed workers (`Recovery`).
///
/// Thread: one round at a time; `aggregate` and `compression` from any thread.
class Averaging {
 public:
  struct Options {
    Weights weights = Weights::samples;
    double data_share = 1;                 ///< p_i of this worker, for weights `data`
    const ReducerSpec* reducer = nullptr;  ///< of the allreduce; null: the cheapest
    /// How the allreduce compresses the model's values; buffers are not compressed.
    Compression compression{};
    bool compress_remote = false;           ///< compress only between hosts
    NativeAllreduce* of_program = nullptr;  ///< for a reducer of programs; outlives the averaging
    /// The buffers of every worker's replica before its first step; only the constructor reads
    /// them.
    std::span<const float> buffers{};
    /// The optimizer's momentum, if the model's values are gradients; 0 without a momentum.
    double momentum = 0;
    /// Reduces the model's values; null: the allreduce does.
    ServerClient* server = nullptr;
    /// The number of samples that all workers together process from now on; then all stop. Every
    /// worker counts the same samples, so no worker has to request the end.
    std::uint64_t samples_to_do = std::numeric_limits<std::uint64_t>::max();
    /// True if the next round begins before the result of a round is known. Workers then agree on
    /// the end one round ahead: when the next round, with as many samples as this one, completes
    /// the job.
    bool ahead = false;
    /// Reduces the model's values bucket by bucket, possibly before the round begins. Ignored with
    /// a server, and in a group that listens for failures. Empty: reduces them as a whole.
    std::optional<BucketReducer::Options> buckets{};
    bool periods = false;  ///< a slow worker may miss rounds (`RoundBook`); never with a server
  };

  /// What this worker, if it has missed rounds, knows of the model of all before the round.
  enum class Newest {
    known,     ///< it has missed none
    received,  ///< another worker has sent it
    unknown,   ///< the round broke, and others completed it: it gets the model in its next round
  };

  struct Result {
    RoundInfo round_info;  ///< no step infos, if another worker finished the round (`Recovery`)
    Duration communicated{};
    Newest newest = Newest::known;
    bool has_mean = false;  ///< some worker had samples behind its values
  };

  /// `group` and the server outlive this.
  Averaging(Group& group, const Options& options);

  /// Called before a backward pass over `samples` samples into `gradient`, the values of the next
  /// round. Returns the sink that takes the gradient while the pass computes it, or null.
  GradientSink* begin(std::uint64_t samples, std::span<float> gradient);

  /// A vector of the replica as `synchronize` takes it: where it is, if it is reduced there; else
  /// its copy in the host's memory, which the caller stores afterwards.
  Values vector_of(Replica& replica, ReplicaVector which) const;

  /// Replaces `values` by their weighted mean. `period`: this worker synchronizes next that many
  /// rounds later; above 1 only with `Options::periods`. Where workers miss rounds, they agree on
  /// an end, a checkpoint or a place only in a round of all workers. Errors: RanksMissing,
  /// PeerLost, TimedOut; `values` are then unspecified.
  Result synchronize(Round round, const StepInfo& info, const SyncValues& values,
                     std::uint32_t period = 1);

  /// Called between two rounds: see `Recovery::agree_after_failures`.
  void agree_after_failures();

  /// Called after this worker's last round: waits for workers that may still need its result, and
  /// leaves the server.
  void leave();

  Group& group() const { return group_; }

  /// How values are reduced, and why, as `RoundReduction::description` says.
  std::string aggregate() const { return reduction_->description(); }

  /// The state of this worker's compression, by name; empty without compression. Called while no
  /// synchronization is under way. Errors of `load_worker_states`: DataError.
  std::map<std::string, OptimizerState> worker_states() const;
  void load_worker_states(const std::map<std::string, OptimizerState>& states);
  /// Measures links again before the next allreduce. After the round `last` workers take part again
  /// as `RoundBook::restart` says.
  void restart(Round last = {}, const std::vector<std::uint32_t>& periods = {});

  /// Statistics of compression; zeros without compression.
  CompressionStats compression() const { return allreduce_.compression(); }

 private:
  /// The workers of a round in which others are missing, and how they reduce. It belongs to a
  /// generation of the group.
  struct Part {
    Part(Group members, const Allreduce::Options& options);
    Group group;
    Allreduce allreduce;
    std::unique_ptr<RoundReduction> reduction;
  };
  /// The workers of a round.
  struct Members {
    Group& group;
    RoundReduction& reduction;
    bool all = true;  ///< every worker
  };

  Members members_of(Round round);
  double weight_of(std::uint64_t samples) const;
  Result average_once(Round round, const StepInfo& info, const SyncValues& values);
  Result average_with_recovery(Round round, const StepInfo& info, const SyncValues& values,
                               std::uint32_t period);
  RoundInfo begin_round(const Members& members, Round round, const StepInfo& mine);
  Duration reduce(const Members& members, const RoundInfo& round_info, const SyncValues& values);
  Newest hand_over_newest(const Members& members, const RoundInfo& round_info,
                          const SyncValues& values);
  Result finished_by_another(const Recovery::Finished& finished);
  void complete(const RoundInfo& round_info);

  Group& group_;
  Options options_;
  /// A duplicate of `group_` that reduces buckets, so that workers can exchange step infos at the
  /// ends of their backward passes while buckets are still under way.
  std::optional<Group> bucket_group_;
  Allreduce allreduce_;
  BufferMean buffers_of_all_;
  std::optional<RoundBook> book_;  ///< with `Options::periods`
  std::optional<Recovery> recovery_;
  std::uint64_t samples_done_ = 0;  ///< of all workers
  std::uint32_t parts_in_ = 0;      ///< the generation of `parts_`
  std::map<std::vector<Rank>, Part> parts_;
  /// Reduces the model's values. Last: its task ends before the objects that it uses.
  std::unique_ptr<RoundReduction> reduction_;
};

/// A scheme whose workers synchronize by `Averaging`.
class AveragingScheme : public Scheme, public SavesState, public ReportsTraffic {
 public:
  std::map<std::string, OptimizerState> worker_states() const override {
    return averaging_.worker_states();
  }
  void load_worker_states(const std::map<std::string, OptimizerState>& states) override {
    averaging_.load_worker_states(states);
  }
  std::string aggregate() const override { return averaging_.aggregate(); }
  CompressionStats compression() const override { return averaging_.compression(); }
  std::optional<SyncRound> leave(Replica& /*replica*/) override {
    averaging_.leave();
    return std::nullopt;
  }

 protected:
  /// `group` and the server outlive this.
  AveragingScheme(Group& group, const Averaging::Options& options) : averaging_(group, options) {}

  Averaging averaging_;
};

/// Runs one round of `Averaging` in a background task, while the worker trains on.
///
/// Threads: one thread calls. From `begin` until `take` the background task owns the averaging and
///          the values.
class BackgroundAveraging {
 public:
  /// `averaging` outlives this.
  explicit BackgroundAveraging(Averaging& averaging) : averaging_(averaging) {}
  /// Waits for the end of a round that is under way.
  ~BackgroundAveraging() = default;

  /// Begins a round. No other round is under way. The task borrows the values until `take`.
  void begin(Round round, const StepInfo& info, const SyncValues& values, std::uint32_t period = 1);

  bool under_way() const { return task_ != nullptr; }
  /// True if `take` would return at once.
  bool finished() const { return under_way() && finished_; }

  /// Waits for the end of the round. Errors: those of `Averaging::synchronize`.
  Averaging::Result take();
  /// The round taken last.
  const BackgroundExchange& taken() const { return exchange_; }

 private:
  Averaging& averaging_;
  std::optional<Averaging::Result> result_;  ///< owned by the background task until it ends
  BackgroundExchange exchange_;              ///< owned like `result_`
  std::atomic<bool> finished_ = false;
  std::unique_ptr<Task> task_;  ///< last: it ends before the objects that it uses
};

}  // namespace syncopate
