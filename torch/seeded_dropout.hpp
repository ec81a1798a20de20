#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>

namespace syncopate::torch_backend {

/// Dropout (Srivastava et al. 2014): a training pass sets each value to 0 with probability `p` and
/// divides the others by 1 − p.
///
/// The mask of a pass follows from the layer's seed and the number of its training passes, and is
/// drawn on the CPU. libtorch's own layer draws from a generator that all replicas of a process
/// share, so that a run of several replicas would not repeat.
struct SeededDropoutImpl : torch::nn::Module {
  explicit SeededDropoutImpl(double p);
  torch::Tensor forward(const torch::Tensor& x);

  double p;
  std::uint64_t seed = 0;  ///< set by `seed_dropout`
  torch::Tensor passes;    ///< a buffer, so that a network that is drawn again counts from 0
};
TORCH_MODULE(SeededDropout);

/// Gives each dropout layer of `module` a seed of its own, which follows from `seed`.
void seed_dropout(torch::nn::Module& module, std::uint64_t seed);

}  // namespace syncopate::torch_backend
