#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <functional>
#include <memory>
#include <utility>

#include "torch/factory.hpp"

namespace syncopate::torch_backend {

/// A module and how to call it: libtorch's modules have no common `forward`.
struct Network {
  std::shared_ptr<torch::nn::Module> module;
  /// From [samples, channels, height, width] to [samples, classes]. It must not write into its
  /// argument, which is the batch itself.
  std::function<torch::Tensor(const torch::Tensor&)> forward;
};

/// Makes a network with freshly drawn parameters; the same draws always give the same network.
using BuildNetwork = std::function<Network()>;

/// A network of a module that has a member function `forward`.
template <class Module>
Network network_of(std::shared_ptr<Module> module) {
  Module* const callee = module.get();
  return {std::move(module), [callee](const torch::Tensor& x) { return callee->forward(x); }};
}

/// Builds a declared network. Errors: ConfigError if the name is unknown, or the network cannot
/// take the input.
Network build_network(const NetworkSettings& settings);

}  // namespace syncopate::torch_backend
