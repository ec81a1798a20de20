#pragma once

#include <cstdint>

#include "data/batch.hpp"
#include "torch/network.hpp"

namespace syncopate::torch_backend {

/// The multiply-adds of convolutions and matrix products in a forward pass over one sample, which
/// this call does, in evaluation mode; the module is on a CPU. Observes the operators that libtorch
/// runs, so it needs to know nothing of the network.
std::uint64_t multiply_adds(const Network& network, const SampleShape& input);

}  // namespace syncopate::torch_backend
