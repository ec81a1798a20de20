#pragma once

#include <torch/cuda.h>
#include <torch/data/dataloader.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <syncopate/job.hpp>
#include <syncopate/torch/host_values.hpp>
#include <syncopate/torch/module_replica.hpp>
#include <syncopate/torch/optimizer_rule.hpp>
#include <syncopate/torch/overlapped_passes.hpp>
#include <syncopate/torch/sampler.hpp>
#include <syncopate/training.hpp>
#include <utility>
#include <vector>

/// Data-parallel training of libtorch's modules in a program's own loop. C++17, over `syncopate.h`:
/// the same library serves every version of libtorch.
namespace syncopate {
inline namespace v0 {

namespace detail {
class UnderWay;
}

/// A collective of a tensor that runs in the background. If the object is dropped, the collective
/// continues, and its tensors live until it has ended.
///
/// Thread: one.
class TensorWork {
 public:
  /// The tensors of the collective.
  struct Tensors {
    torch::Tensor result;
    torch::Tensor host;       ///< the values of `result` during the transfer; may be the same
    torch::Tensor read = {};  ///< read until the end
  };
  /// Made by the collectives of `TorchJob`.
  TensorWork(CollectiveWork work, Tensors tensors);

  /// True once the collective has ended.
  bool done() const;
  /// Waits for the collective and returns the tensor with its result: the caller's own tensor if
  /// the collective changes it. Errors: those of the collective.
  torch::Tensor wait();

 private:
  std::shared_ptr<detail::UnderWay> under_way_;  ///< shared by all copies; null after a move
};

namespace detail {

/// A collective with its tensors, which live until it has ended, even if this object is destroyed.
/// The destructor does not wait: during an exception that might last forever.
class UnderWay {
 public:
  struct Part {
    CollectiveWork work;
    TensorWork::Tensors tensors;
  };

  UnderWay(CollectiveWork work, TensorWork::Tensors tensors) {
    own_.push_back({std::move(work), std::move(tensors)});
  }
  ~UnderWay() {
    if (!part().work.done()) keep();
  }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

  Part& part() { return own_.front(); }

 private:
  /// Collectives that were dropped while running. Never destroyed, since a collective may outlive
  /// `main`.
  struct Dropped {
    std::mutex mutex;
    std::list<Part> parts;
  };
  static Dropped& dropped() {
    static Dropped* const all = std::make_unique<Dropped>().release();
    return *all;
  }
  void keep() {
    Dropped& all = dropped();
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.parts.remove_if([](const Part& part) { return part.work.done(); });
    all.parts.splice(all.parts.end(), own_);
  }

  std::list<Part> own_;  ///< one element; a list allows splicing without allocation
};

}  // namespace detail

/// A worker's membership in a job that trains libtorch's modules: `Job` with calls for tensors,
/// modules and datasets.
///
/// Thread, errors: as `Job`.
class TorchJob : public Job {
 public:
  using Job::Job;

  /// The device on which this worker trains: the CUDA device of its local rank, or the CPU without
  /// CUDA. Several workers share a device if there are fewer devices than workers.
  torch::Device device() const {
    const std::uint32_t own = local_rank();
    if (!torch::cuda::is_available()) {
      return torch::kCPU;
    }
    const auto devices = static_cast<std::uint32_t>(torch::cuda::device_count());
    return {torch::kCUDA, static_cast<torch::DeviceIndex>(own % devices)};
  }

  using Job::allgather;
  using Job::allgather_async;
  using Job::allreduce;
  using Job::allreduce_async;
  using Job::broadcast;
  using Job::broadcast_async;

  // Collectives take dense tensors. Errors: ConfigError for a sparse or undefined tensor, and for a
  // tensor to be changed whose values share memory, such as the result of `expand`.

  /// Replaces a tensor of float32, float64, float16, bfloat16, int8, uint8, int32 or int64 by its
  /// sum over all workers.
  /// Errors: ConfigError for another type.
  void allreduce(torch::Tensor tensor) { allreduce_async(std::move(tensor)).wait(); }
  /// As `allreduce`, but returns at once.
  TensorWork allreduce_async(torch::Tensor tensor);
  /// Replaces a tensor of any type by that of worker 0.
  void broadcast(torch::Tensor tensor) { broadcast_async(std::move(tensor)).wait(); }
  /// As `broadcast`, but returns at once.
  TensorWork broadcast_async(torch::Tensor tensor);
  /// Returns the tensors of all workers, by rank. They have the same type and shape.
  std::vector<torch::Tensor> allgather(const torch::Tensor& tensor) {
    return allgather_async(tensor).wait().unbind();
  }
  /// As `allgather`, but returns at once. The result has an additional first dimension, the ranks.
  TensorWork allgather_async(const torch::Tensor& tensor);

  /// Copies the parameters and buffers of worker 0 to a module.
  void broadcast_parameters(torch::nn::Module& module);

  /// Returns a data loader over this worker's share of a dataset; all workers pass the same
  /// dataset. All workers together take `batch_size` samples in a step, and every sample once per
  /// epoch (`Share`). One loop over a loader is one epoch. Errors: ConfigError for a dataset
  /// without a size, and for options with drop_last.
  template <class Dataset>
  auto partition_dataset(Dataset dataset, std::size_t batch_size,
                         torch::data::DataLoaderOptions options = {}) {
    const std::size_t samples = samples_of(dataset, options);
    return loader(std::move(dataset), share(samples, batch_size), std::move(options));
  }
  /// As `partition_dataset`, but the workers divide the `global_batch` samples of a step, or of a
  /// round of esync, by the measured speeds of their devices (`Job::share_by_speed`):
  /// `step(batch.data.size(0))` weighs each batch by its samples.
  template <class Dataset>
  auto partition_dataset_by_speed(Dataset dataset, std::size_t global_batch,
                                  torch::data::DataLoaderOptions options = {}) {
    const std::size_t samples = samples_of(dataset, options);
    return loader(std::move(dataset), share_by_speed(samples, global_batch), std::move(options));
  }

 private:
  template <class Dataset>
  static std::size_t samples_of(const Dataset& dataset,
                                const torch::data::DataLoaderOptions& options) {
    static_assert(!Dataset::is_stateful, "a stateful dataset has an order of its own");
    if (options.drop_last()) {
      throw ConfigError(
          "partition_dataset takes no drop_last(true): every sample is trained on once an epoch; "
          "step(batch.data.size(0)) weighs a last batch by its samples");
    }
    const auto samples = dataset.size();
    if (!samples) {
      throw ConfigError("a dataset without a size cannot be partitioned");
    }
    return *samples;
  }
  template <class Dataset>
  static auto loader(Dataset dataset, Share share, torch::data::DataLoaderOptions options) {
    options.batch_size(share.step_size());
    return torch::data::make_data_loader(std::move(dataset), ShareSampler(std::move(share)),
                                         std::move(options));
  }
};

/// Joins the job for which a launcher (`syncopate run`, mpirun, srun, torchrun) has started this
/// process, as one of its workers. Without a launcher the process is a job of one worker.
inline TorchJob init(const InitOptions& options = {}) {
  return TorchJob(options);
}

/// Settings of a `DistributedOptimizer` besides module and optimizer.
struct DistributedOptions {
  std::string scheme = {};  ///< as `InitOptions::scheme`, or one of `register_scheme`
  Options options = {};     ///< as `InitOptions::options`
  /// Samples in a step of this worker, for a program that does not call `partition_dataset`.
  std::optional<std::uint32_t> batch_size = {};
  std::function<void(const std::string& json)> on_round =
      {};                    ///< as `Training::Settings::on_round`
  Training::Sums sums = {};  ///< for option `aggregate` `torch`: `sums_of` of a process group
};

/// Replaces a program's optimizer in its training loop: `step` exchanges gradients or parameters
/// with the other workers as the job's scheme requires.
///
/// The module starts with the parameters of worker 0. Its parameters and floating-point buffers
/// become views of flat vectors and stay so; gradients become views in `step`. A parameter that no
/// worker's backward pass has used has no gradient and does not change. If only some workers used
/// it, the mean counts the gradient of the others as zero. Frozen parameters, which may be of any
/// type, get the values of worker 0 and are then not exchanged. The learning rate is the
/// optimizer's, and the program may change it at any time; if a parameter server takes the steps,
/// the initial learning rate applies.
///
/// Order:  every worker makes one, once per job. It ends at the end of its scope or with `finish`.
///         Both wait for the loops of all workers, whose modules then hold the job's model; during
///         an exception, the end of the scope ends the job for all workers instead.
/// Thread: that of the job. Module and optimizer outlive this object.
/// Errors: of the constructor: ConfigError for an unsuitable module, optimizer or option.
class DistributedOptimizer {
 public:
  /// Waits until every worker has made one. Errors: also the error that ended the job.
  DistributedOptimizer(TorchJob& job, torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                       const DistributedOptions& options = {});

  /// Removes the gradients of the module. Errors: ConfigError with option overlap on, between a
  /// backward pass and its step.
  void zero_grad();

  /// Sets the samples of the next step before its backward pass, which already sends gradients with
  /// option overlap on. Without that option it has no effect.
  /// Errors: ConfigError once the pass has begun, and for a number that `step` does not accept.
  void expect(std::int64_t samples);

  /// Held during all backward passes of a step except the last. Gradients accumulate until `step`
  /// in any case; with option overlap on, gradients of passes outside of it are sent at once.
  class NoSync {
   public:
    /// Made by `no_sync`.
    explicit NoSync(detail::OverlappedPasses* passes) : passes_(passes) { pause(true); }
    /// Ends the pause: a later pass is again the last one of its step.
    ~NoSync() { pause(false); }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    void pause(bool paused) {
      if (passes_ != nullptr) {
        passes_->pause(paused);
      }
    }
    detail::OverlappedPasses* passes_;  ///< null without overlap
  };
  /// Returns the guard; the optimizer must outlive it.
  [[nodiscard]] NoSync no_sync() { return NoSync(passes_ ? &*passes_ : nullptr); }

  /// Takes a step of this worker with the gradients that `backward` has left in the module, over
  /// the number of samples in a batch of `partition_dataset`. Afterwards the module has the
  /// parameters for the next step.
  /// Errors: the error that ended the job; Cancelled once the user has ended it; ConfigError after
  ///         `finish`, and for a module that has changed.
  void step() { step(training_.next_samples()); }
  /// As `step`, over `samples` samples, the weight of the gradient in a mean over workers.
  /// Errors: also ConfigError for a number below 0 or above 2^32 - 1, and with option overlap on
  /// for a number other than that of `expect`, or a gradient that was changed after its pass.
  void step(std::int64_t samples);

  /// Waits until every worker has called it, even after different numbers of steps: before a test,
  /// a checkpoint or another call of all workers in the middle of training, such as after an epoch.
  /// While it waits, this worker takes part in the rounds of the others without samples. All
  /// modules are equal afterwards, except in `local`, `downpour`, `easgd` and `nbssgd` with
  /// `commit` `racy`, where each worker keeps its own. Gradients do not change, so it may be called
  /// between the passes of a step, but with option overlap on only before the first one.
  /// `place`: a name for this call, the same on all workers.
  /// Errors: those of `step`; ConfigError if workers pass different names.
  void align(const std::string& place = "align") {
    replica_->collect();
    const std::vector<std::uint8_t> gradients = replica_->gradient_flags();
    training_.align(place);
    replica_->use_gradients(gradients.data());
  }

  /// Ends this worker's steps and waits for the loops of all workers. The module then holds the
  /// job's model, with the steps of all workers. Errors: the error that ended the job.
  void finish() {
    passes_.reset();
    training_.finish();
  }

 private:
  static Training::Settings settings(const torch::nn::Module& module,
                                     const torch::optim::Optimizer& optimizer,
                                     const DistributedOptions& options);
  std::unique_ptr<ModuleReplica> replica_of(TorchJob& job, torch::nn::Module& module,
                                            torch::optim::Optimizer& optimizer);
  static std::uint32_t weight_of(std::int64_t samples);
  void expect_rule() const;
  void say_settings();
  void say_gradients(std::uint32_t samples);

  ModuleReplica* replica_ = nullptr;  ///< owned by the training
  OptimizerRule rule_;                ///< at the beginning
  std::string settings_ = {};         ///< of the last step
  /// Which parameters had a gradient in the last step.
  std::vector<std::uint8_t> gradients_ = {};
  Training training_;
  std::optional<detail::OverlappedPasses> passes_ = {};  ///< with option overlap on
};

inline TensorWork::TensorWork(CollectiveWork work, Tensors tensors)
    : under_way_(std::make_shared<detail::UnderWay>(std::move(work), std::move(tensors))) {}

inline bool TensorWork::done() const {
  return !under_way_ || under_way_->part().work.done();
}

inline torch::Tensor TensorWork::wait() {
  if (!under_way_) {
    throw ConfigError("this work was moved from: wait for the one that it was moved to");
  }
  under_way_->part().work.wait();
  Tensors& tensors = under_way_->part().tensors;
  const torch::Tensor host = std::exchange(tensors.host, tensors.result);
  if (host.data_ptr() != tensors.result.data_ptr()) {
    const torch::NoGradGuard no_grad;
    tensors.result.copy_(host);
  }
  return tensors.result;
}

inline TensorWork TorchJob::allreduce_async(torch::Tensor tensor) {
  const torch::Tensor host = detail::host_values_to_change("allreduce", tensor);
  const auto count = static_cast<std::size_t>(host.numel());
  return {allreduce_async(host.data_ptr(), count, detail::type_of(host)),
          {std::move(tensor), host}};
}

inline TensorWork TorchJob::broadcast_async(torch::Tensor tensor) {
  const torch::Tensor host = detail::host_values_to_change("broadcast", tensor);
  everyone().next_type(detail::type_name(host));
  return {broadcast_async(host.data_ptr(), host.nbytes()), {std::move(tensor), host}};
}

inline TensorWork TorchJob::allgather_async(const torch::Tensor& tensor) {
  const torch::Tensor host = detail::host_values("allgather", tensor);
  everyone().next_type(detail::type_name(host));
  std::vector<std::int64_t> shape = host.sizes().vec();
  shape.insert(shape.begin(), size());
  const torch::Tensor all = torch::empty(shape, host.options());
  return {allgather_async(host.data_ptr(), host.nbytes(), all.data_ptr()), {all, all, host}};
}

inline void TorchJob::broadcast_parameters(torch::nn::Module& module) {
  for (const torch::Tensor& tensor : module.parameters()) {
    broadcast(tensor);
  }
  for (const torch::Tensor& tensor : module.buffers()) {
    broadcast(tensor);
  }
}

inline Training::Settings DistributedOptimizer::settings(const torch::nn::Module& module,
                                                         const torch::optim::Optimizer& optimizer,
                                                         const DistributedOptions& options) {
  Training::Settings settings;
  settings.optimizer = rule_of(optimizer, flat::trained_tensors(module));
  settings.scheme = options.scheme;
  settings.options = options.options;
  settings.batch_size = options.batch_size;
  settings.on_round = options.on_round;
  settings.sums = options.sums;
  return settings;
}

inline std::unique_ptr<ModuleReplica> DistributedOptimizer::replica_of(
    TorchJob& job, torch::nn::Module& module, torch::optim::Optimizer& optimizer) {
  // A second replica would take the module's tensors from the first one.
  job.expect_untrained();
  auto replica = std::make_unique<ModuleReplica>(module, optimizer);
  replica_ = replica.get();
  for (const flat::NamedTensor& named : flat::frozen_tensors(module)) {
    job.broadcast(named.tensor);
  }
  return replica;
}

inline DistributedOptimizer::DistributedOptimizer(TorchJob& job, torch::nn::Module& module,
                                                  torch::optim::Optimizer& optimizer,
                                                  const DistributedOptions& options)
    : rule_(rule_of(optimizer)),
      training_(job, replica_of(job, module, optimizer), settings(module, optimizer, options)) {
  if (training_.overlaps()) {
    passes_.emplace(training_, *replica_);
  }
}

inline void DistributedOptimizer::zero_grad() {
  if (passes_) {
    passes_->expect_none_under_way("zero_grad");
  }
  replica_->zero_gradients();
}

inline void DistributedOptimizer::expect(std::int64_t samples) {
  const std::uint32_t weight = weight_of(samples);
  if (passes_) {
    passes_->expect(weight);
  }
}

inline std::uint32_t DistributedOptimizer::weight_of(std::int64_t samples) {
  if (samples < 0 || samples > std::numeric_limits<std::uint32_t>::max()) {
    throw ConfigError("a step has from 0 to 4294967295 samples, found " + std::to_string(samples));
  }
  return static_cast<std::uint32_t>(samples);
}

inline void DistributedOptimizer::step(std::int64_t samples) {
  const std::uint32_t weight = weight_of(samples);
  expect_rule();
  say_settings();
  if (passes_) {
    passes_->end_pass(weight);
  }
  replica_->collect();
  say_gradients(weight);
  training_.step(weight);
}

/// Reports which parameters have a gradient: the step changes no others, except with a server,
/// which changes all.
inline void DistributedOptimizer::say_gradients(std::uint32_t samples) {
  std::vector<std::uint8_t> flags = replica_->gradient_flags();
  const auto unused = std::find(flags.begin(), flags.end(), 0);
  if (samples > 0 && unused != flags.end() && training_.server_moves_all()) {
    throw ConfigError(
        "no backward pass of this step has used " +
        replica_->tensors()[static_cast<std::size_t>(unused - flags.begin())].name +
        ", and the parameter server takes steps of the whole model: its rule, by a momentum or a "
        "weight decay, would move it without a gradient; choose a scheme without a server, such as "
        "esync, or SGD without both");
  }
  if (flags != gradients_) {
    gradients_ = std::move(flags);
    training_.has_gradients(gradients_);
  }
}

/// Passes changed settings to the library, which compares them with those of the other workers.
inline void DistributedOptimizer::say_settings() {
  std::string settings = step_settings_of(replica_->optimizer());
  if (settings != settings_) {
    settings_ = std::move(settings);
    training_.use_settings(replica_->learning_rates().front(), detail::checksum_of(settings_));
  }
}

inline void DistributedOptimizer::expect_rule() const {
  if (!training_.server_steps()) return;
  if (rule_of(replica_->optimizer()).options != rule_.options) {
    throw ConfigError(
        "the parameter server takes the optimizer's steps by its rule of the beginning: what the "
        "program changes of it, such as weight_decay or momentum, has no effect; choose a scheme "
        "without a server, such as esync");
  }
  const std::vector<double> rates = replica_->learning_rates();
  const auto is_first = [&](double rate) { return detail::same(rate, rule_.learning_rate); };
  if (!std::all_of(rates.begin(), rates.end(), is_first)) {
    throw ConfigError(
        "the parameter server takes the optimizer's steps at the rate of the beginning: a learning "
        "rate that the program changes has no effect; give the job a schedule, by the options "
        "schedule, schedule-step and schedule-factor, or choose a scheme without a server, such as "
        "esync");
  }
}

}  // namespace v0
}  // namespace syncopate
