#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "torch/module_replica.hpp"
#include "torch/optimizers.hpp"

/// Batches, modules and replicas that the tests of torch/ share.
namespace syncopate::torch_backend {

/// Returns normally distributed features, and random labels that do not depend on them.
inline Batch random_batch(std::uint64_t seed, SampleShape shape, std::uint32_t samples,
                          std::uint32_t classes = 10) {
  Random random(seed);
  Batch batch;
  batch.shape = shape;
  for (std::size_t i = 0; i < samples * shape.values(); ++i) {
    batch.features.push_back(static_cast<float>(random.normal()));
  }
  for (std::uint32_t i = 0; i < samples; ++i) {
    batch.labels.push_back(static_cast<std::int64_t>(random.below(classes)));
  }
  return batch;
}

inline constexpr SampleShape tiny_shape{1, 6, 6};
inline constexpr std::uint32_t tiny_classes = 3;

inline Batch tiny_batch(std::uint64_t seed, std::uint32_t samples = 8) {
  return random_batch(seed, tiny_shape, samples, tiny_classes);
}

/// A convolution, BatchNorm and a linear layer.
struct Tiny : torch::nn::Module {
  Tiny()
      : conv(register_module("conv", torch::nn::Conv2d(1, 2, 3))),
        norm(register_module("norm", torch::nn::BatchNorm2d(2))),
        fc(register_module("fc", torch::nn::Linear(2 * 4 * 4, tiny_classes))) {}

  torch::Tensor forward(const torch::Tensor& x) {
    return fc(torch::relu(norm(conv(x))).flatten(1));
  }

  torch::nn::Conv2d conv;
  torch::nn::BatchNorm2d norm;
  torch::nn::Linear fc;
};

inline ModuleReplica::MakeOptimizer with_optimizer(OptimizerSettings spec) {
  return [spec = std::move(spec)](std::vector<torch::Tensor> parameters) {
    return make_optimizer(spec, std::move(parameters));
  };
}

inline OptimizerSettings with_usual_rate(Optimizer optimizer) {
  return {.optimizer = optimizer, .learning_rate = usual_learning_rate(optimizer)};
}

/// A replica together with its module, which a replica does not expose. The seed is fixed, since
/// libtorch's default seed differs between processes.
template <class Module>
struct Watched {
  /// `options` must be complete except for `build`.
  explicit Watched(ModuleReplica::Options options) : replica(building(std::move(options))) {}

  ModuleReplica::Options building(ModuleReplica::Options options) {
    options.build = [this] {
      auto built = std::make_shared<Module>();
      if (!module) module = built;
      return network_of(built);
    };
    torch::manual_seed(1);
    if (!options.make_optimizer)
      options.make_optimizer = with_optimizer({.optimizer = Optimizer::momentum});
    return options;
  }

  std::shared_ptr<Module> module;  ///< the module of `replica`, whose constructor sets it
  ModuleReplica replica;
};

inline std::vector<float> copy(std::span<const float> values) {
  return {values.begin(), values.end()};
}

inline std::vector<float> values_of(Replica& replica, ReplicaVector which) {
  return copy(replica.view(which));
}

/// Returns a plain module with the parameters that `ModuleReplica::initialise(seed)` draws.
template <class Module>
std::shared_ptr<Module> drawn(std::uint64_t seed) {
  torch::manual_seed(seed);
  return std::make_shared<Module>();
}

inline torch::Tensor features_of(const Batch& batch) {
  const auto [channels, height, width] = batch.shape;
  return torch::tensor(batch.features)
      .view({static_cast<std::int64_t>(batch.samples()), channels, height, width});
}

/// Returns the values of the tensors, one tensor after another.
inline std::vector<float> flattened(const std::vector<torch::Tensor>& tensors) {
  std::vector<float> values;
  for (const torch::Tensor& tensor : tensors) {
    const torch::Tensor host = tensor.detach().cpu().contiguous();
    values.insert(values.end(), host.data_ptr<float>(), host.data_ptr<float>() + host.numel());
  }
  return values;
}

inline std::vector<torch::Tensor> gradients_of(const torch::nn::Module& module) {
  std::vector<torch::Tensor> gradients;
  for (const torch::Tensor& parameter : module.parameters()) gradients.push_back(parameter.grad());
  return gradients;
}

}  // namespace syncopate::torch_backend
