#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "kernels/thread_pool.hpp"
#include "optim/delay_compensation.hpp"
#include "optim/update_rule.hpp"
#include "server/shard_state.hpp"

namespace syncopate {

/// A worker's description of the gradient that it pushes.
struct PushFacts {
  std::uint64_t step = 0;  ///< the worker's steps, the pushed one included
  /// Samples on which the worker has trained since its previous push. 0: the push has no effect.
  std::uint64_t samples = 0;
  double loss_sum = 0;  ///< over those samples
  float weight = 1;     ///< of the gradient, in an update of its own or in a mean with others
};

/// A shard's slot for one worker: the values that they exchange, and the state of the worker.
struct WorkerSlot {
  std::span<float> in;             ///< the values that the worker pushed last
  std::span<float> out;            ///< the values that the shard sends
  std::vector<float> own_in;       ///< memory of `in`, unless the worker shares its own
  std::vector<float> own_out;      ///< memory of `out`, unless the worker shares its own
  std::vector<float> buffers;      ///< of the worker, at its last push
  std::uint64_t gathered = 0;      ///< samples behind its buffers: of all its pushes
  PushFacts facts{};               ///< of its last push
  std::uint64_t read_version = 0;  ///< the version that it received last
  std::uint64_t steps = 0;         ///< in the model
  std::uint64_t staleness = 0;     ///< of its last applied push
  bool dropped = false;            ///< its last push
};

/// One shard's range of the model, the rule that updates it, and a slot for each worker.
///
/// The store applies updates as a whole, one after the other, so that a worker receives the model
/// of one moment. The version counts the updates.
///
/// Thread: one; an update may run on several threads.
class ShardStore {
 public:
  struct Options {
    std::size_t params = 0;   ///< of this shard
    std::size_t buffers = 0;  ///< of this shard
    std::uint32_t workers = 1;
    RuleSpec rule{};
    /// The learning rate after this number of samples of the job.
    std::function<double(std::uint64_t samples)> learning_rate;
    std::optional<DelayCompensation::Options> compensation{};
    /// Drops a push if the model has had this many updates or more since its worker received it.
    std::optional<std::uint64_t> max_delay{};
    std::uint32_t threads = 1;  ///< for an update, if it is a long one
    /// The samples of the job: once they are complete, the store drops every push.
    std::uint64_t samples_to_train = std::numeric_limits<std::uint64_t>::max();
  };

  explicit ShardStore(const Options& options);

  bool has_model() const { return has_model_; }
  std::uint64_t version() const { return version_; }
  std::uint64_t samples() const { return samples_; }
  double loss_sum() const { return loss_sum_; }
  std::span<const float> params() const { return params_; }
  std::uint32_t workers() const { return static_cast<std::uint32_t>(slots_.size()); }
  WorkerSlot& slot(Rank worker) { return slots_[worker.value]; }
  /// True if the store needs the parameters that it sent to a worker again: for delay compensation.
  bool keeps_answers() const { return compensation_.has_value(); }

  /// Sets the model to continue from: parameters, and buffers for every worker.
  void load(std::span<const float> params, std::span<const float> buffers);

  /// True if the samples of the job are complete: the store then drops every push.
  bool is_complete() const { return samples_ >= samples_to_train_; }

  /// One update with the gradient in the worker's slot; with `answer`, writes the new parameters to
  /// the slot in the same pass over memory. A push without samples has no effect.
  void apply(Rank worker, bool answer);
  /// One update with Σ weight_i g_i / Σ weight_i over the gradients of `workers` that have samples.
  /// It counts as an update even if none of them has samples.
  void apply_mean(std::span<const Rank> workers);
  /// Counts the worker's push, whose gradient enters the model by `update`. Returns false if the
  /// push is dropped, or has no samples.
  bool admit(Rank worker);
  /// One update with `gradient`, in the order of the parameters.
  void update(std::span<const float> gradient);
  /// EASGD: moves the parameters in the worker's slot and the shard's towards each other by `rate`
  /// (Zhang et al. 2015, equations 5 and 6).
  void exchange(Rank worker, float rate);
  /// Writes Σ weight_i · in_i over all slots, reduced in the order of ranks, to every slot. Does
  /// not use the shard's own parameters.
  void reduce();
  /// Writes the parameters to a worker's slot.
  void read(Rank worker);

  /// Records the description of the push in the worker's slot.
  void record_push(Rank worker, const PushFacts& facts);
  /// Σ n_i b_i / Σ n_i over the buffers of all workers, n_i the samples of all pushes of worker i.
  std::vector<float> mean_buffers() const;

  ShardState state() const;
  /// Errors: DataError if the state is of another model, rule or number of workers.
  void restore(const ShardState& state);

 private:
  void step_with_mean(std::span<const Rank> workers, double total_weight);
  void for_each_block(const std::function<void(std::size_t first, std::size_t count)>& visit);
  bool drops(WorkerSlot& slot);
  void count_push(WorkerSlot& slot);
  void sent(WorkerSlot& slot);

  std::vector<float> params_;
  std::unique_ptr<UpdateRule> rule_;
  std::function<double(std::uint64_t)> learning_rate_;
  std::optional<DelayCompensation> compensation_;
  std::vector<WorkerSlot> slots_;  ///< by rank
  std::optional<std::uint64_t> max_delay_;
  std::uint64_t samples_to_train_;
  std::uint64_t version_ = 0;
  std::uint64_t samples_ = 0;
  double loss_sum_ = 0;
  bool has_model_ = false;
  ThreadPool pool_;
};

}  // namespace syncopate
