#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <syncopate/job.hpp>
#include <syncopate/loop.hpp>
#include <utility>
#include <vector>

#include "torch/host_values.hpp"
#include "torch/loop_data.hpp"
#include "torch/loop_module.hpp"
#include "torch/module_replica.hpp"
#include "torch/optimizer_rule.hpp"

namespace syncopate {

/// Makes replicas of a `torch::nn::Module` with a `forward` from [samples, channels, height, width]
/// to [samples, classes]. `make_module` returns a `std::shared_ptr` to a new module at each call;
/// `make_optimizer` returns a `std::unique_ptr` to an optimizer of the tensors that it is given.
///
/// Loss:   cross entropy of softmax; other losses: `torch_backend::ModuleReplica`.
/// Thread: a job calls both functions on several threads, one at a time.
template <class MakeModule>
MakeReplica module_replicas(MakeModule make_module,
                            torch_backend::ModuleReplica::MakeOptimizer make_optimizer,
                            torch::Device device = torch::kCPU) {
  return [=] {
    return std::make_unique<torch_backend::ModuleReplica>(torch_backend::ModuleReplica::Options{
        .build = [make_module] { return torch_backend::network_of(make_module()); },
        .make_optimizer = make_optimizer,
        .device = device});
  };
}

/// A collective of a tensor that goes on while its caller does something else.
///
/// Thread: one.
class TensorWork {
 public:
  /// What the collective works on.
  struct Tensors {
    torch::Tensor result;
    torch::Tensor host;       ///< the values of `result` while they travel; may be the same
    torch::Tensor read = {};  ///< is read until the end
  };
  TensorWork(CollectiveWork work, Tensors tensors)
      : work_(std::move(work)), tensors_(std::move(tensors)) {}

  bool done() const { return work_.done(); }
  /// Returns the tensor with the result, once the collective has ended: the caller's own, where the
  /// collective changes it. Errors: those of the collective.
  torch::Tensor wait();

 private:
  CollectiveWork work_;
  Tensors tensors_;
};

/// A worker's membership in a job of programs that train libtorch's modules: `LoopJob`, and what
/// concerns tensors, modules and datasets.
///
/// Thread, errors: as `LoopJob`.
class TorchJob : public LoopJob {
 public:
  using LoopJob::LoopJob;

  using LoopJob::allgather;
  using LoopJob::allgather_async;
  using LoopJob::allreduce;
  using LoopJob::allreduce_async;
  using LoopJob::broadcast;
  using LoopJob::broadcast_async;

  /// Replaces a tensor of float32, float64, int32, int64 or bfloat16 by its sum over all workers.
  /// Errors: ConfigError, for another type.
  void allreduce(torch::Tensor tensor) { allreduce_async(std::move(tensor)).wait(); }
  TensorWork allreduce_async(torch::Tensor tensor);
  /// Replaces a tensor of any type by that of worker 0.
  void broadcast(torch::Tensor tensor) { broadcast_async(std::move(tensor)).wait(); }
  TensorWork broadcast_async(torch::Tensor tensor);
  /// The tensors of all workers, by rank. They have the same type and shape.
  std::vector<torch::Tensor> allgather(const torch::Tensor& tensor) {
    return allgather_async(tensor).wait().unbind();
  }
  /// The result has one more dimension, the ranks, in front.
  TensorWork allgather_async(const torch::Tensor& tensor);

  /// Gives a module the parameters and buffers of worker 0.
  void broadcast_parameters(torch::nn::Module& module);

  /// A data loader over this worker's share of a dataset, which all workers pass alike. All take
  /// `batch_size` samples together in a step, and every sample once in an epoch, in an order that
  /// follows from the job's seed. One loop over a loader is one epoch.
  template <class Dataset>
  auto partition_dataset(Dataset dataset, std::size_t batch_size,
                         torch::data::DataLoaderOptions options = {}) {
    static_assert(!Dataset::is_stateful, "a stateful dataset has an order of its own");
    const auto samples = dataset.size();
    if (!samples) {
      throw ConfigError("a dataset without a size cannot be partitioned");
    }
    LoopShare share = this->share(*samples, batch_size);
    options.batch_size(share.step_size());
    torch_backend::SharedSampler sampler([share]() mutable { return share.next(); },
                                         [share]() mutable { share.next_epoch(); });
    return torch::data::make_data_loader(std::move(dataset), std::move(sampler),
                                         std::move(options));
  }
};

/// Joins the job that a launcher (`syncopate run`, mpirun, srun, torchrun) has started this process
/// for, as one of its workers. Without a launcher the process is a job of one worker.
inline TorchJob init(const InitOptions& options = {}) {
  return TorchJob(options);
}

/// What a `DistributedOptimizer` is made with besides module and optimizer.
struct DistributedOptions {
  std::string scheme = {};                          ///< as `InitOptions::scheme`
  std::map<std::string, std::string> options = {};  ///< as `InitOptions::options`
  /// Samples of a step of this worker, in a program that does not call `partition_dataset`.
  std::optional<std::uint32_t> batch_size = {};
};

/// Takes the place of a program's optimizer in its training loop: `step` exchanges gradients or
/// parameters with the other workers as the job's scheme says.
///
/// The module starts with the parameters of worker 0. Its parameters, gradients and floating
/// buffers become views of flat vectors, and stay views of them; a parameter without a gradient
/// counts as one whose gradient is zero. The learning rate is that of the optimizer, which the
/// program may change at any time; where a parameter server takes the steps, it is that of the
/// beginning.
///
/// Order:  every worker makes one, once a job. It is left by the end of its scope or by `finish`.
///         In a synchronous job both wait for the loops of all workers; while an exception flies,
///         the end of the scope ends the job for all instead.
/// Thread: that of the job. Module and optimizer outlive it.
/// Errors: of the constructor, ConfigError: what the module, the optimizer or the options lack.
class DistributedOptimizer {
 public:
  DistributedOptimizer(TorchJob& job, torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                       const DistributedOptions& options = {});

  /// Sets the gradients of the module to zero.
  void zero_grad();

  /// A step of this worker with the gradients that `backward` has left in the module, over as many
  /// samples as `partition_dataset` hands out at a time. Afterwards the module has the parameters
  /// to go on with.
  /// Errors: the error that ended the job; Cancelled, once the user has ended it; ConfigError,
  /// after `finish`, and for a module that has changed.
  void step();
  /// The same over `samples` samples, which is the weight of the gradient in a mean over workers.
  /// Errors: also ConfigError, for a number below 0 or above 2^32 - 1.
  void step(std::int64_t samples);

  /// This worker takes no further step. Errors: the error that ended the job.
  void finish();

 private:
  std::unique_ptr<torch_backend::LoopModule> replica_of(torch::nn::Module& module,
                                                        torch::optim::Optimizer& optimizer);
  void expect_rate() const;

  torch_backend::LoopModule* replica_ = nullptr;  ///< of the training
  double rate_;                                   ///< at the beginning
  LoopTraining training_;
};

inline torch::Tensor TensorWork::wait() {
  work_.wait();
  const torch::Tensor host = std::exchange(tensors_.host, tensors_.result);
  if (host.data_ptr() != tensors_.result.data_ptr()) {
    const torch::NoGradGuard no_grad;
    tensors_.result.copy_(host);
  }
  return tensors_.result;
}

inline TensorWork TorchJob::allreduce_async(torch::Tensor tensor) {
  const torch::Tensor host = torch_backend::host_values(tensor);
  return {allreduce_async(torch_backend::summable(host)), {std::move(tensor), host}};
}

inline TensorWork TorchJob::broadcast_async(torch::Tensor tensor) {
  const torch::Tensor host = torch_backend::host_values(tensor);
  return {broadcast_async(torch_backend::bytes_of(host)), {std::move(tensor), host}};
}

inline TensorWork TorchJob::allgather_async(const torch::Tensor& tensor) {
  const torch::Tensor host = torch_backend::host_values(tensor);
  std::vector<std::int64_t> shape = host.sizes().vec();
  shape.insert(shape.begin(), size());
  torch::Tensor all = torch::empty(shape, host.options());
  return {allgather_async(torch_backend::bytes_of(host), torch_backend::bytes_of(all)),
          {all, all, host}};
}

inline void TorchJob::broadcast_parameters(torch::nn::Module& module) {
  for (const torch::Tensor& tensor : module.parameters()) {
    broadcast(tensor);
  }
  for (const torch::Tensor& tensor : module.buffers()) {
    broadcast(tensor);
  }
}

inline std::unique_ptr<torch_backend::LoopModule> DistributedOptimizer::replica_of(
    torch::nn::Module& module, torch::optim::Optimizer& optimizer) {
  auto replica = std::make_unique<torch_backend::LoopModule>(module, optimizer);
  replica_ = replica.get();
  return replica;
}

inline DistributedOptimizer::DistributedOptimizer(TorchJob& job, torch::nn::Module& module,
                                                  torch::optim::Optimizer& optimizer,
                                                  const DistributedOptions& options)
    : rate_(optimizer.param_groups().front().options().get_lr()),
      training_(job, replica_of(module, optimizer), [&] {
        torch_backend::OptimizerRule rule = torch_backend::rule_of(optimizer);
        return LoopTraining::Options{.optimizer = {.learning_rate = rule.learning_rate,
                                                   .rule = std::move(rule.options),
                                                   .has_no_rule = std::move(rule.has_no_rule)},
                                     .scheme = options.scheme,
                                     .options = options.options,
                                     .batch_size = options.batch_size};
      }()) {}

inline void DistributedOptimizer::zero_grad() {
  replica_->zero_gradients();
}

inline void DistributedOptimizer::step() {
  step(training_.batch_size());
}

inline void DistributedOptimizer::step(std::int64_t samples) {
  if (samples < 0 || samples > std::numeric_limits<std::uint32_t>::max()) {
    throw ConfigError("a step has from 0 to 4294967295 samples, found " + std::to_string(samples));
  }
  expect_rate();
  replica_->collect();
  training_.step(static_cast<std::uint32_t>(samples));
}

inline void DistributedOptimizer::finish() {
  training_.finish();
}

inline void DistributedOptimizer::expect_rate() const {
  if (training_.server_steps() && replica_->learning_rate() != rate_) {
    throw ConfigError(
        "the parameter server takes the optimizer's steps at the rate of the beginning: a learning "
        "rate that the program changes has no effect; choose a scheme without a server, such as "
        "esync");
  }
}

}  // namespace syncopate
