#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/batch.hpp"
#include "optim/optimizer_spec.hpp"
#include "scheme/replica.hpp"
#include "spec/networks.hpp"

/// The interface of torch/ to the rest of Syncopate, without a header of libtorch.
namespace syncopate::torch_backend {

/// A network over samples of one shape.
struct NetworkSettings {
  std::string name;  ///< one of `network_names()`, or the path of a TorchScript file
  SampleShape input = {};
  std::uint32_t classes = 10;
  WeightInit weight_init = WeightInit::standard;
  std::uint64_t dropout_seed = 0;         ///< of the masks of dropout; each worker has its own
  std::optional<std::uint32_t> resize{};  ///< side to which it scales images; empty: as they are
};

/// An optimizer and its hyperparameters. An optimizer ignores those that it does not read.
struct OptimizerSettings {
  Optimizer optimizer = Optimizer::momentum;
  double learning_rate = 0.05;
  double momentum = 0.9;
  double weight_decay = 0;
  double beta1 = 0.9;                 ///< of adam and adamw
  double beta2 = 0.999;               ///< of adam and adamw
  double alpha = 0.99;                ///< of rmsprop: smoothing of the mean square
  std::optional<double> epsilon{};    ///< empty: libtorch's, 1e-8, with adagrad 1e-10
  std::optional<double> clip_norm{};  ///< the greatest norm of a gradient; empty: any
};

struct NetworkFacts {
  std::string name;
  std::string summary;
  std::uint64_t parameters = 0;
  std::uint64_t buffers = 0;        ///< running statistics
  std::uint64_t multiply_adds = 0;  ///< of a forward pass over one sample
  SampleShape input = {};
  std::uint32_t classes = 0;
  std::uint32_t smallest_side = 1;  ///< of images that the network takes
  std::string refusal = {};         ///< why it cannot take `input`: it has no figures then
};

/// Errors: ConfigError if the name is unknown, or the network cannot take the input.
NetworkFacts network_facts(const NetworkSettings& settings);

/// The facts of every network. A height or width of 0 becomes the other one; if both are 0, each
/// network takes its usual size. A network that cannot take such images has a refusal instead of
/// figures.
std::vector<NetworkFacts> all_network_facts(const SampleShape& input, std::uint32_t classes);

/// Refuses a network that cannot be trained, or whose outputs are not [samples, classes]. Starts no
/// thread, so that this process may still fork. Errors: ConfigError.
void check_network(const NetworkSettings& settings);

/// The full name of a device: "cpu" or "cuda:0 (NVIDIA H100)". `wanted` is `auto`, `cpu`, `cuda`
/// (the worker's own by its index) or `cuda:N`.
/// Errors: ConfigError if this machine or this build of libtorch does not have the device.
std::string resolve_device(const std::string& wanted, std::uint32_t local_index);

/// The version of libtorch: "1.13.1".
std::string libtorch_version();

/// The version of libtorch's MKL, in its own words; empty if libtorch has another BLAS.
std::string mkl_version();

/// The devices of this machine as `resolve_device` names them, the CPU first.
std::vector<std::string> available_devices();

/// Multiplications and additions of float32 per second, in products of square matrices by one
/// thread.
double matrix_speed();

/// Prepares this process for training with `threads` threads for computation; memory that a step
/// frees is kept for the next. Called before the first replica. Errors: ConfigError if `threads` is
/// 0.
void set_threads(std::uint32_t threads);

/// A replica of a network with an optimizer, on a device named by `resolve_device`'s rules.
/// Errors: ConfigError.
std::unique_ptr<Replica> make_replica(const NetworkSettings& network,
                                      const OptimizerSettings& optimizer, const std::string& device,
                                      Precision precision = Precision::float32);

}  // namespace syncopate::torch_backend
