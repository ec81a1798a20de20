#pragma once

#include <cstdint>

#include "data/batch.hpp"
#include "torch/network.hpp"

namespace syncopate::torch_backend {

/// A multilayer perceptron: inputs of any shape, 256 and 128 hidden units with ReLU, classes.
Network make_mlp(const SampleShape& input, std::uint32_t classes);

}  // namespace syncopate::torch_backend
