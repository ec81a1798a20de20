#pragma once

#include <torch/nn/module.h>

#include "spec/networks.hpp"

namespace syncopate::torch_backend {

/// Draws the weights of all convolutions and linear layers of `module` from libtorch's default CPU
/// generator, and sets their biases to 0. BatchNorm stays as it is. `WeightInit::standard` draws
/// nothing: layers keep what their constructors drew.
void draw_weights(torch::nn::Module& module, WeightInit init);

}  // namespace syncopate::torch_backend
