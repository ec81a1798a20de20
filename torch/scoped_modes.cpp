#include "torch/scoped_modes.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/utils.h>

#include <type_traits>
#include <utility>

#include "torch/script_network.hpp"

namespace syncopate::torch_backend {
namespace {

/// The mutex is global, because libtorch's generator is.
std::unique_lock<std::mutex> lock_draws() {
  static std::mutex draws;
  return std::unique_lock(draws);
}

}  // namespace

EvaluationMode::EvaluationMode(torch::nn::Module& module) : submodules_(module.modules()) {
  for (const auto& submodule : submodules_) was_training_.push_back(submodule->is_training());
  module.eval();
}

EvaluationMode::~EvaluationMode() {
  // A parent sets the mode of its children and comes before them, so each submodule gets its own
  // mode last.
  for (std::size_t i = 0; i < submodules_.size(); ++i) submodules_[i]->train(was_training_[i]);
}

StatisticsMode::StatisticsMode(torch::nn::Module& module) : evaluation_(module) {
  for (const auto& submodule : module.modules()) {
    reset_if<torch::nn::BatchNorm1dImpl>(*submodule);
    reset_if<torch::nn::BatchNorm2dImpl>(*submodule);
    reset_if<torch::nn::BatchNorm3dImpl>(*submodule);
    add_if_script(*submodule);
  }
}

StatisticsMode::~StatisticsMode() {
  for (const auto& restore : restore_) restore();
}

template <class Layer>
void StatisticsMode::reset_if(torch::nn::Module& submodule) {
  auto* const layer = dynamic_cast<Layer*>(&submodule);
  if (layer == nullptr || !layer->options.track_running_stats()) return;
  const auto momentum = layer->options.momentum();
  restore_.push_back([layer, momentum] { layer->options.momentum(momentum); });
  layer->options.momentum(std::decay_t<decltype(momentum)>{});  // none: the mean of all batches
  layer->reset_running_stats();
  layer->train();
}

void StatisticsMode::add_if_script(torch::nn::Module& submodule) {
  auto* const layer = dynamic_cast<ScriptModule*>(&submodule);
  if (layer == nullptr || !layer->has_statistics()) return;
  layer->train();
  const auto buffers = layer->named_buffers(/*recurse=*/false);
  ScriptLayer added{.statistics = {{buffers["running_mean"], buffers["running_var"]}}};
  if (const auto* const batches = buffers.find("num_batches_tracked")) added.batches = *batches;
  if (added.batches.defined()) added.batches.zero_();
  added.momentum = layer->momentum();
  for (std::size_t i = 0; i < added.sums.size(); ++i) {
    added.sums[i] = torch::zeros_like(added.statistics[i], torch::kFloat64);
  }
  script_layers_.push_back(std::move(added));
}

void StatisticsMode::begin_batch() {
  const torch::NoGradGuard no_grad;
  for (ScriptLayer& layer : script_layers_) {
    for (torch::Tensor& statistic : layer.statistics) statistic.zero_();
    if (layer.batches.defined()) layer.batches.zero_();
  }
}

void StatisticsMode::end_batch() {
  const torch::NoGradGuard no_grad;
  for (ScriptLayer& layer : script_layers_) {
    ++layer.count;
    for (std::size_t i = 0; i < layer.sums.size(); ++i) {
      layer.sums[i].add_(layer.statistics[i].to(torch::kFloat64), 1 / layer.momentum);
      layer.statistics[i].copy_(layer.sums[i] / layer.count);
    }
    if (layer.batches.defined()) layer.batches.fill_(layer.count);
  }
}

SeededDraws::SeededDraws(std::uint64_t seed)
    : lock_(lock_draws()), generator_(at::detail::getDefaultCPUGenerator()) {
  const std::lock_guard lock(generator_.mutex());
  state_before_ = generator_.get_state();
  generator_.set_current_seed(seed);
}

SeededDraws::~SeededDraws() {
  const std::lock_guard lock(generator_.mutex());
  generator_.set_state(state_before_);
}

}  // namespace syncopate::torch_backend
