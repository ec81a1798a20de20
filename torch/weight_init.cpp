#include "torch/weight_init.hpp"

#include <torch/nn/init.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

namespace syncopate::torch_backend {
namespace {

template <class Layer>
void draw_layer(torch::nn::Module& module, WeightInit init) {
  auto* const layer = module.as<Layer>();
  if (layer == nullptr) return;
  if (init == WeightInit::xavier) {
    torch::nn::init::xavier_uniform_(layer->weight);
  } else {
    torch::nn::init::kaiming_normal_(layer->weight, /*a=*/0, torch::kFanIn, torch::kReLU);
  }
  if (layer->bias.defined()) torch::nn::init::zeros_(layer->bias);
}

}  // namespace

void draw_weights(torch::nn::Module& module, WeightInit init) {
  if (init == WeightInit::standard) return;
  for (const auto& submodule : module.modules()) {
    draw_layer<torch::nn::Conv2dImpl>(*submodule, init);
    draw_layer<torch::nn::LinearImpl>(*submodule, init);
  }
}

}  // namespace syncopate::torch_backend
