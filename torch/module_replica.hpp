#pragma once

#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "scheme/replica.hpp"
#include "torch/flat.hpp"
#include "torch/gradient_hooks.hpp"
#include "torch/network_module.hpp"
#include "torch/unused_tensors.hpp"

namespace syncopate::torch_backend {

/// A replica of any libtorch module, trained by any libtorch optimizer whose rule needs no closure.
///
/// Every trained parameter, once however many names it has, is a view of `params`, its gradient a
/// view of `grads`; frozen parameters and floating buffers are views of `buffers`. Integer buffers
/// (BatchNorm's count of batches) stay with the module. The module must keep its tensors: code that
/// replaces a parameter or a gradient by another tensor breaks the views.
class ModuleReplica final : public Replica {
 public:
  /// The tensors that the optimizer trains.
  enum class Grain {
    /// Pieces of the flat vector, for rules that treat each value separately: all of libtorch's
    /// except LBFGS. The result is the same, and small networks need fewer calls.
    pieces,
    /// The module's own parameters, for rules that look at a tensor as a whole.
    tensors,
  };

  using MakeOptimizer =
      std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::Tensor>)>;
  /// From the outputs [samples, classes] and the labels [samples] to a scalar, a mean over samples.
  using MeanLoss = std::function<torch::Tensor(const torch::Tensor&, const torch::Tensor&)>;

  struct Options {
    BuildNetwork build = {};  ///< called once here and once by each `initialise`
    MakeOptimizer make_optimizer = {};
    Grain grain = Grain::pieces;
    MeanLoss mean_loss = {};  ///< empty: cross entropy of softmax, which sample weights need
    torch::Device device = torch::kCPU;
    Precision precision = Precision::float32;
    std::optional<double> clip_norm{};  ///< the greatest norm of a gradient; empty: any
  };

  /// Errors: ConfigError if the module has no trained parameters, or is not of float32.
  explicit ModuleReplica(Options options);

  std::vector<TensorInfo> layout(ReplicaVector which) const override;
  std::span<float> view(ReplicaVector which) override;
  void store(ReplicaVector which) override;
  void move_into(SharedMemory& memory) override;

  /// Errors of both passes: ConfigError if libtorch refuses (a batch that the network cannot take,
  /// a device without memory); InternalError if a batch contradicts itself. Errors of the backward
  /// pass: ConfigError, as `UnusedTensors`.
  using Replica::backward;
  bool reports_gradients() const override { return options_.device.is_cpu(); }
  void on_progress(PassDetail detail, const std::function<void()>& progressed) override;
  /// Notifies `sink` of each parameter's gradient as libtorch completes it. ConfigError, as
  /// `GradientHooks`.
  PassResult backward(const Batch& batch, GradientSink* sink) override;
  PassResult evaluate(const Batch& batch) override;
  /// Recomputes those of BatchNorm. Errors: ConfigError, as the passes.
  void recompute_statistics(const std::function<bool(Batch& into)>& next) override;

  /// Gives the values of a new network, drawn after `torch::manual_seed(seed)` on a CPU, whatever
  /// the device. Resets buffers, integer ones included; the optimizer keeps its state.
  void initialise(std::uint64_t seed) override;

  void set_learning_rate(double rate) override;
  /// As torch's `clip_grad_norm_` with the norm of the whole gradient.
  void clip_gradient() override;
  void local_step() override;

  OptimizerState optimizer_state() const override;
  void load_optimizer_state(const OptimizerState& state) override;

 private:
  struct Inputs {
    torch::Tensor features;
    torch::Tensor labels;
  };

  FlatVector& vector(ReplicaVector which);
  Inputs inputs(const Batch& batch) const;
  torch::Tensor loss_of(const torch::Tensor& outputs, const torch::Tensor& labels,
                        const Batch& batch) const;
  std::vector<torch::Tensor> pieces() const;
  std::vector<torch::Tensor> optimized() const;
  PassResult forward_and_backward(const Batch& batch);
  void expect_gradients_in_place() const;

  Options options_;
  Network network_;
  FlatTensors params_;
  FlatVector grads_;
  FlatTensors buffers_;
  GradientHooks hooks_;
  std::function<void()> on_operator_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::optional<UnusedTensors> unused_;  ///< once there is an optimizer
};

}  // namespace syncopate::torch_backend
