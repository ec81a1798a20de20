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
#include "optim/rule_state.hpp"
#include "optim/update_rule.hpp"

namespace syncopate {

/// What a worker says of the gradient that it pushes.
struct PushFacts {
  std::uint64_t step = 0;  ///< the worker's steps, the pushed included
  std::uint64_t samples =
      0;                ///< trained on since its push before; 0: it had none, and pushes nothing
  double loss_sum = 0;  ///< over those samples
  float weight = 1;     ///< of the gradient, in an update of its own or in a mean with others
};

/// A shard and one worker: what they exchange, and what the shard knows of the worker.
struct WorkerSlot {
  std::span<float> in;             ///< what the worker pushed last
  std::span<float> out;            ///< what it is sent
  std::vector<float> own_in;       ///< where these are, unless the worker lends memory of its own
  std::vector<float> own_out;      ///< likewise
  std::vector<float> buffers;      ///< its own, as of its last push
  std::uint64_t gathered = 0;      ///< samples that its buffers come from: of all its pushes
  PushFacts facts{};               ///< of its last push
  std::uint64_t read_version = 0;  ///< of what it was sent last
  std::uint64_t steps = 0;         ///< that have been taken in
  std::uint64_t staleness = 0;     ///< of its last applied push
  bool dropped = false;            ///< its last push was left out
};

/// Everything that a shard must write down to go on later as if it had never stopped.
struct ShardState {
  std::vector<float> params;
  std::vector<float> buffers;  ///< the mean over workers
  OptimizerState rest;         ///< the rule's state, counts, and what each worker is known by
};

/// One shard's range of the model, the rule that updates it, and a slot for each worker.
///
/// Updates are applied whole and one after the other, so that what a worker is sent was the model at
/// one moment. The shard counts them: its version.
///
/// Thread: one, which may have helpers within an update.
class ShardStore {
 public:
  struct Options {
    std::size_t params = 0;   ///< of this shard
    std::size_t buffers = 0;  ///< likewise
    std::uint32_t workers = 1;
    RuleSpec rule{};
    /// The learning rate after so many samples of the job.
    std::function<double(std::uint64_t samples)> learning_rate;
    std::optional<DelayCompensation::Options> compensation{};
    std::uint32_t threads = 1;  ///< threads for an update, if it is a long one
    /// Of the job: once they are complete, what is pushed is dropped.
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
  /// Whether what a worker was sent last is needed again, as what its next gradient is computed at.
  bool keeps_answers() const { return compensation_.has_value(); }

  /// The first model: parameters, and buffers for every worker.
  void load(std::span<const float> params, std::span<const float> buffers);

  /// Whether the samples of the job are complete: a push is then dropped, and changes nothing.
  bool is_complete() const { return samples_ >= samples_to_train_; }

  /// One update with the gradient in the worker's slot; with `answer`, writes the new parameters to
  /// the slot on the way, while they are at hand. A push without samples changes nothing.
  void apply(Rank worker, bool answer);
  /// One update with Σ weight_i g_i / Σ weight_i over the gradients in the desks of `workers` that have
  /// samples; counted, even if none of them has any.
  void apply_mean(std::span<const Rank> workers);
  /// EASGD: moves the parameters in the worker's slot and the shard's towards each other by `rate`
  /// (Zhang et al. 2015, equations 5 and 6).
  void exchange(Rank worker, float rate);
  /// Writes Σ weight_i · in_i over all desks, added in the order of ranks, to every slot. The shard's
  /// own parameters have no part in it.
  void reduce();
  /// Writes the parameters to a worker's slot.
  void read(Rank worker);

  /// Notes down what a worker says of the push that is in its slot.
  void record_push(Rank worker, const PushFacts& facts);
  /// Σ n_i b_i / Σ n_i over the buffers of all workers, n_i the samples of all pushes of worker i.
  std::vector<float> mean_buffers() const;

  ShardState state() const;
  /// Errors: DataError, when it is the state of another model, rule or number of workers.
  void restore(const ShardState& state);

 private:
  void step_with_mean(std::span<const Rank> workers, double total_weight);
  void for_each_block(const std::function<void(std::size_t first, std::size_t count)>& visit);
  bool drops(WorkerSlot& slot);
  void count(WorkerSlot& slot);
  void sent(WorkerSlot& slot);

  std::vector<float> params_;
  std::unique_ptr<UpdateRule> rule_;
  std::function<double(std::uint64_t)> learning_rate_;
  std::optional<DelayCompensation> compensation_;
  std::vector<WorkerSlot> slots_;  ///< by rank
  std::uint64_t samples_to_train_;
  std::uint64_t version_ = 0;
  std::uint64_t samples_ = 0;
  double loss_sum_ = 0;
  bool has_model_ = false;
  ThreadPool pool_;
};

}  // namespace syncopate
