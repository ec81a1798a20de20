#include "torch/module_replica.hpp"

#include <fmt/core.h>
#include <torch/utils.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/errors.hpp"
#include "torch/operators.hpp"
#include "torch/optimizers.hpp"
#include "torch/precision.hpp"
#include "torch/scoped_modes.hpp"
#include "transport/shared_memory.hpp"

namespace syncopate::torch_backend {
namespace {

/// Values in a piece of the flat vectors on a CPU: a piece's parameters, gradients and momentum fit
/// into a core's cache together, so that the passes of a step over them read memory once.
constexpr std::int64_t piece_values = 64 * 1024;

torch::Tensor mean_cross_entropy(const torch::Tensor& outputs, const torch::Tensor& labels) {
  return torch::cross_entropy_loss(outputs, labels);
}

bool is_cross_entropy(const ModuleReplica::MeanLoss& loss) {
  using Function = torch::Tensor (*)(const torch::Tensor&, const torch::Tensor&);
  const Function* const function = loss.target<Function>();
  return function != nullptr && *function == mean_cross_entropy;
}

/// Σ w l / Σ w over the samples of a batch; 0 if every weight is 0.
torch::Tensor weighted_cross_entropy(const torch::Tensor& outputs, const torch::Tensor& labels,
                                     const torch::Tensor& weights) {
  const torch::Tensor losses = torch::cross_entropy_loss(
      outputs, labels, /*weight=*/{}, static_cast<std::int64_t>(at::Reduction::None));
  const torch::Tensor total = weights.sum().clamp_min(std::numeric_limits<float>::min());
  return (losses * weights).sum() / total;
}

ModuleReplica::Options with_defaults(ModuleReplica::Options options) {
  if (!options.mean_loss) options.mean_loss = mean_cross_entropy;
  return options;
}

Network build_on(const BuildNetwork& build, torch::Device device) {
  Network network = build();
  network.module->to(device);
  return network;
}

/// Copies values by name. Both dictionaries are of modules of one kind.
void copy_values(const torch::OrderedDict<std::string, torch::Tensor>& from,
                 const torch::OrderedDict<std::string, torch::Tensor>& to) {
  const torch::NoGradGuard no_grad;
  for (const auto& item : to) item.value().copy_(from[item.key()]);
}

/// The loss and the number of correct answers, with one transfer from the device for both.
PassResult result_of(const torch::Tensor& outputs, const torch::Tensor& mean_loss,
                     const torch::Tensor& labels) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor correct = outputs.argmax(1).eq(labels).sum();
  const torch::Tensor figures =
      torch::stack({mean_loss.to(torch::kFloat64), correct.to(torch::kFloat64)}).cpu();
  const auto samples = static_cast<std::uint32_t>(labels.numel());
  const auto* const values = figures.data_ptr<double>();
  return {samples, values[0] * samples, static_cast<std::uint32_t>(values[1])};
}

/// Runs a pass over `batch`. libtorch's errors come with a stack trace; ours are one line.
template <class Pass>
PassResult run_pass(const char* name, const Batch& batch, const Pass& pass) {
  try {
    return pass();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    throw ConfigError(fmt::format("{} pass over {} samples of {}x{}x{}: {}", name, batch.samples(),
                                  batch.shape.channels, batch.shape.height, batch.shape.width,
                                  text.substr(0, text.find('\n'))));
  }
}

}  // namespace

ModuleReplica::ModuleReplica(Options options)
    : options_(with_defaults(std::move(options))),
      network_(build_on(options_.build, options_.device)),
      params_(some_trained_tensors(*network_.module), options_.device),
      grads_(params_.values().numel(), options_.device),
      buffers_(untrained_tensors(*network_.module), options_.device),
      hooks_(params_) {
  for (std::size_t i = 0; i < params_.tensors().size(); ++i) {
    params_.tensors()[i].tensor.mutable_grad() = params_.slice(grads_.tensor(), i);
  }
  optimizer_ = options_.make_optimizer(optimized());
  unused_.emplace(*optimizer_, params_);
}

std::vector<torch::Tensor> ModuleReplica::optimized() const {
  if (options_.grain == Grain::pieces) return pieces();
  std::vector<torch::Tensor> tensors;
  for (const NamedTensor& named : params_.tensors()) tensors.push_back(named.tensor);
  return tensors;
}

std::vector<torch::Tensor> ModuleReplica::pieces() const {
  const std::int64_t all = params_.values().numel();
  const std::int64_t most = params_.values().is_cpu() ? piece_values : all;
  std::vector<torch::Tensor> pieces;
  for (std::int64_t begin = 0; begin < all; begin += most) {
    const std::int64_t length = std::min(most, all - begin);
    torch::Tensor piece = params_.values().narrow(0, begin, length).detach();
    piece.set_requires_grad(true);
    piece.mutable_grad() = grads_.tensor().narrow(0, begin, length);
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

std::vector<TensorInfo> ModuleReplica::layout(ReplicaVector which) const {
  return which == ReplicaVector::buffers ? buffers_.layout() : params_.layout();
}

FlatVector& ModuleReplica::vector(ReplicaVector which) {
  if (which == ReplicaVector::grads) return grads_;
  return which == ReplicaVector::params ? params_.vector() : buffers_.vector();
}

std::span<float> ModuleReplica::view(ReplicaVector which) {
  FlatVector& values = vector(which);
  return {values.view(), values.size()};
}

void ModuleReplica::store(ReplicaVector which) {
  vector(which).store();
}

void ModuleReplica::move_into(SharedMemory& memory) {
  if (!options_.device.is_cpu()) return;
  for (const ReplicaVector which :
       {ReplicaVector::params, ReplicaVector::grads, ReplicaVector::buffers}) {
    if (const std::size_t count = view(which).size(); count > 0) {
      vector(which).move_into(make_values(&memory, count));
    }
  }
}

ModuleReplica::Inputs ModuleReplica::inputs(const Batch& batch) const {
  const auto samples = static_cast<std::int64_t>(batch.samples());
  if (batch.features.size() != batch.samples() * batch.shape.values()) {
    throw InternalError(fmt::format("a batch of {} samples of {} values has {} features", samples,
                                    batch.shape.values(), batch.features.size()));
  }
  // libtorch has no tensors of constants; nothing writes into these two.
  auto* const features = const_cast<float*>(batch.features.data());
  auto* const labels = const_cast<std::int64_t*>(batch.labels.data());
  const auto [channels, height, width] = batch.shape;
  return {torch::from_blob(features, {samples, channels, height, width}, torch::kFloat32)
              .to(options_.device),
          torch::from_blob(labels, {samples}, torch::kInt64).to(options_.device)};
}

torch::Tensor ModuleReplica::loss_of(const torch::Tensor& outputs, const torch::Tensor& labels,
                                     const Batch& batch) const {
  if (batch.weights.empty()) return options_.mean_loss(outputs, labels);
  if (!is_cross_entropy(options_.mean_loss) || batch.weights.size() != batch.samples()) {
    throw ConfigError(fmt::format(
        "{} weights for {} samples: expected one weight per sample, and the loss cross entropy",
        batch.weights.size(), batch.samples()));
  }
  auto* const weights = const_cast<float*>(batch.weights.data());
  const torch::Tensor on_host =
      torch::from_blob(weights, {static_cast<std::int64_t>(batch.samples())}, torch::kFloat32);
  return weighted_cross_entropy(outputs, labels, on_host.to(options_.device));
}

void ModuleReplica::on_progress(PassDetail detail, const std::function<void()>& progressed) {
  on_operator_ = detail == PassDetail::operators ? progressed : nullptr;
  hooks_.on_complete(progressed);
}

PassResult ModuleReplica::backward(const Batch& batch, GradientSink* sink) {
  std::optional<OperatorObserver> observer;
  if (on_operator_) observer.emplace(on_operator_);
  const PassResult result = hooks_.run(
      sink, [&] { return batch.samples() == 0 ? PassResult{} : forward_and_backward(batch); });
  if (batch.samples() > 0) unused_->expect_as_in_torch(hooks_.written());
  return result;
}

PassResult ModuleReplica::forward_and_backward(const Batch& batch) {
  return run_pass("backward", batch, [&] {
    const Inputs in = inputs(batch);
    Autocast autocast(options_.precision, options_.device);
    const torch::Tensor outputs = autocast.outputs_of(network_.forward(in.features));
    const torch::Tensor mean_loss = loss_of(outputs, in.labels, batch);
    autocast.end();
    report_forward_done();
    mean_loss.backward();
    expect_gradients_in_place();
    return result_of(outputs, mean_loss, in.labels);
  });
}

void ModuleReplica::expect_gradients_in_place() const {
  const float* const begin = grads_.tensor().data_ptr<float>();
  for (std::size_t i = 0; i < params_.tensors().size(); ++i) {
    const torch::Tensor& grad = params_.tensors()[i].tensor.grad();
    if (grad.defined() && grad.data_ptr() == begin + params_.offset(i)) continue;
    throw InternalError(fmt::format(
        "the gradient of {} is no longer a view of the flat gradient: the network's own code must "
        "not replace or reset gradients",
        params_.tensors()[i].name));
  }
}

PassResult ModuleReplica::evaluate(const Batch& batch) {
  if (batch.samples() == 0) return {};
  const EvaluationMode mode(*network_.module);
  const torch::NoGradGuard no_grad;
  return run_pass("evaluation", batch, [&] {
    const Inputs in = inputs(batch);
    const Autocast autocast(options_.precision, options_.device);
    const torch::Tensor outputs = autocast.outputs_of(network_.forward(in.features));
    return result_of(outputs, options_.mean_loss(outputs, in.labels), in.labels);
  });
}

void ModuleReplica::recompute_statistics(const std::function<bool(Batch& into)>& next) {
  Batch batch;
  if (!next(batch)) return;
  StatisticsMode mode(*network_.module);
  if (!mode.has_statistics()) return;
  const torch::NoGradGuard no_grad;
  do {
    mode.begin_batch();
    run_pass("statistics", batch, [&] {
      const Autocast autocast(options_.precision, options_.device);
      network_.forward(inputs(batch).features);
      return PassResult{};
    });
    mode.end_batch();
  } while (next(batch));
}

void ModuleReplica::initialise(std::uint64_t seed) {
  const SeededDraws draws(seed);
  const Network fresh = options_.build();
  copy_values(fresh.module->named_parameters(), network_.module->named_parameters());
  copy_values(fresh.module->named_buffers(), network_.module->named_buffers());
}

void ModuleReplica::set_learning_rate(double rate) {
  for (auto& group : optimizer_->param_groups()) group.options().set_lr(rate);
}

/// The factor stays on the device: a step does not wait for it.
void ModuleReplica::clip_gradient() {
  if (!options_.clip_norm) return;
  const torch::NoGradGuard no_grad;
  torch::Tensor gradient = grads_.tensor();
  gradient.mul_((*options_.clip_norm / (gradient.norm() + 1e-6)).clamp_max(1));
}

void ModuleReplica::local_step() {
  clip_gradient();
  optimizer_->step();
}

OptimizerState ModuleReplica::optimizer_state() const {
  return state_of(*optimizer_);
}

void ModuleReplica::load_optimizer_state(const OptimizerState& state) {
  load_state(*optimizer_, state);
  unused_->continue_from(state);
}

}  // namespace syncopate::torch_backend
