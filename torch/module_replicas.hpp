#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>

#include "torch/module_replica.hpp"

namespace syncopate {

/// Makes replicas of a `torch::nn::Module` with a `forward` from [samples, channels, height, width]
/// to [samples, classes], for `Job::start`. `make_module` returns a `std::shared_ptr` to a new
/// module at each call; `make_optimizer` returns a `std::unique_ptr` to an optimizer of the tensors
/// that it is given.
///
/// Loss:   cross entropy of softmax; other losses: `torch_backend::ModuleReplica`.
/// Thread: a job calls both functions on several threads, one at a time.
template <class MakeModule>
std::function<std::unique_ptr<Replica>()> module_replicas(
    MakeModule make_module, torch_backend::ModuleReplica::MakeOptimizer make_optimizer,
    torch::Device device = torch::kCPU) {
  return [=] {
    return std::make_unique<torch_backend::ModuleReplica>(torch_backend::ModuleReplica::Options{
        .build = [make_module] { return torch_backend::network_of(make_module()); },
        .make_optimizer = make_optimizer,
        .device = device});
  };
}

}  // namespace syncopate
