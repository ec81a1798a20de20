#include "torch/factory.hpp"

#include <ATen/Parallel.h>
#include <fmt/ranges.h>
#include <torch/utils.h>

#include <algorithm>
#include <utility>

#include "base/errors.hpp"
#include "base/freed_memory.hpp"
#include "spec/networks.hpp"
#include "torch/device.hpp"
#include "torch/module_replica.hpp"
#include "torch/network_module.hpp"
#include "torch/operators.hpp"
#include "torch/optimizers.hpp"
#include "torch/scoped_modes.hpp"

namespace syncopate::torch_backend {
namespace {

std::uint64_t values_in(const std::vector<NamedTensor>& tensors) {
  std::uint64_t values = 0;
  for (const auto& named : tensors) values += static_cast<std::uint64_t>(named.tensor.numel());
  return values;
}

NetworkFacts facts_without_figures(const NetworkSettings& settings) {
  const NetworkChoice network = NetworkChoice::of(settings.name);
  return {.name = settings.name,
          .summary = std::string(network->summary),
          .input = settings.input,
          .classes = settings.classes,
          .smallest_side = network->smallest_side};
}

/// `input` with its open sides filled in.
SampleShape with_sides(SampleShape input, std::uint32_t usual) {
  const std::uint32_t side = std::max(input.height, input.width);
  if (input.height == 0) input.height = side > 0 ? side : usual;
  if (input.width == 0) input.width = side > 0 ? side : usual;
  return input;
}

/// "1x28x28"
std::string text_of(const SampleShape& shape) {
  return fmt::format("{}x{}x{}", shape.channels, shape.height, shape.width);
}

/// Errors: ConfigError if the network cannot take its samples, or its outputs have another shape.
void check_outputs(const Network& network, const NetworkSettings& settings) {
  constexpr std::int64_t samples = 2;
  const auto& [channels, height, width] = settings.input;
  const torch::NoGradGuard no_grad;
  const EvaluationMode mode(*network.module);
  torch::Tensor outputs;
  try {
    outputs = network.forward(torch::zeros({samples, channels, height, width}));
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    throw ConfigError(fmt::format("network {} cannot take samples of {}: {}", settings.name,
                                  text_of(settings.input), text.substr(0, text.find('\n'))));
  }
  if (outputs.sizes() != torch::IntArrayRef({samples, settings.classes})) {
    throw ConfigError(fmt::format(
        "network {}: expected outputs [samples, {}] for the {} classes of the data, found [{}] for "
        "{} samples",
        settings.name, settings.classes, settings.classes, fmt::join(outputs.sizes(), ", "),
        samples));
  }
}

}  // namespace

NetworkFacts network_facts(const NetworkSettings& settings) {
  const Network network = build_network(settings);
  NetworkFacts facts = facts_without_figures(settings);
  facts.parameters = values_in(trained_tensors(*network.module));
  facts.buffers = values_in(untrained_tensors(*network.module));
  facts.multiply_adds = multiply_adds(network, settings.input);
  return facts;
}

std::vector<NetworkFacts> all_network_facts(const SampleShape& input, std::uint32_t classes) {
  std::vector<NetworkFacts> all;
  for (const NetworkSpec& network : all_networks()) {
    const NetworkSettings settings{.name = std::string(network.name),
                                   .input = with_sides(input, network.usual_side),
                                   .classes = classes};
    const auto& [channels, height, width] = settings.input;
    const std::string refusal = size_refusal(network, height, width);
    all.push_back(refusal.empty() ? network_facts(settings) : facts_without_figures(settings));
    all.back().refusal = refusal;
  }
  return all;
}

void check_network(const NetworkSettings& settings) {
  set_threads(1);
  const Network network = build_network(settings);
  const FlatTensors params(some_trained_tensors(*network.module), torch::kCPU);
  const FlatTensors buffers(untrained_tensors(*network.module), torch::kCPU);
  check_outputs(network, settings);
}

std::string resolve_device(const std::string& wanted, std::uint32_t local_index) {
  return device_title(device_for(wanted, local_index));
}

void set_threads(std::uint32_t threads) {
  if (threads == 0) throw ConfigError("0 threads per worker: expected at least 1");
  keep_freed_memory();
  at::set_num_threads(static_cast<int>(threads));
  // libtorch allows this one only once in a process.
  if (at::get_num_interop_threads() != 1) at::set_num_interop_threads(1);
}

std::unique_ptr<Replica> make_replica(const NetworkSettings& network,
                                      const OptimizerSettings& optimizer, const std::string& device,
                                      Precision precision) {
  return std::make_unique<ModuleReplica>(ModuleReplica::Options{
      .build = [network] { return build_network(network); },
      .make_optimizer =
          [optimizer](std::vector<torch::Tensor> parameters) {
            return make_optimizer(optimizer, std::move(parameters));
          },
      .device = device_for(device, 0),
      .precision = precision,
      .clip_norm = optimizer.clip_norm,
  });
}

}  // namespace syncopate::torch_backend
