#include "torch/statistics_mode.hpp"

#include <torch/nn/modules/batchnorm.h>

#include <type_traits>

namespace syncopate::torch_backend {

StatisticsMode::StatisticsMode(torch::nn::Module& module) : evaluation_(module) {
  for (const auto& part : module.modules()) {
    reset_if<torch::nn::BatchNorm1dImpl>(*part);
    reset_if<torch::nn::BatchNorm2dImpl>(*part);
    reset_if<torch::nn::BatchNorm3dImpl>(*part);
  }
}

StatisticsMode::~StatisticsMode() {
  for (const auto& restore : restore_) restore();
}

template <class Layer>
void StatisticsMode::reset_if(torch::nn::Module& part) {
  auto* const layer = dynamic_cast<Layer*>(&part);
  if (layer == nullptr || !layer->options.track_running_stats()) return;
  const auto momentum = layer->options.momentum();
  restore_.push_back([layer, momentum] { layer->options.momentum(momentum); });
  layer->options.momentum(std::decay_t<decltype(momentum)>{});  // none: the mean of all batches
  layer->reset_running_stats();
  layer->train();
}

}  // namespace syncopate::torch_backend
