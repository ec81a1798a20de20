// Writes the parameters and the outputs of a network, so that PyTorch can compute the outputs
// again:
//
//   network_outputs NETWORK CHANNELS SIDE CLASSES FOLDER
//
// FOLDER/model.safetensors is a checkpoint of the network. FOLDER/passes.safetensors has "inputs",
// their "outputs" in evaluation mode, and as "after.NAME" the buffers after one pass in training
// mode; its metadata has the version of libtorch.

#include <ATen/Parallel.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/utils.h>

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "config/text.hpp"
#include "torch/flat.hpp"
#include "torch/network_module.hpp"

namespace syncopate {
namespace {

constexpr std::int64_t samples = 16;

/// Changes all values at random. BatchNorm layers start as the identity, with which a test could
/// not notice that one parameter is used in place of another.
void draw_all(const torch::nn::Module& module) {
  for (const auto& named : torch_backend::trained_tensors(module)) {
    named.tensor.add_(torch::randn_like(named.tensor), 0.02);
  }
  for (const auto& named : torch_backend::untrained_tensors(module)) {
    named.tensor.uniform_(0.5, 1.5);
  }
}

void set_momentum(const torch::nn::Module& module, double momentum) {
  for (const auto& layer : module.modules()) {
    if (auto* const norm = layer->as<torch::nn::BatchNorm2dImpl>()) {
      norm->options.momentum(momentum);
    }
  }
}

/// Sets the running statistics to those of `images`. With other statistics the signal fades from
/// layer to layer, and outputs hardly depend on inputs and parameters.
void take_statistics(const torch_backend::Network& network, const torch::Tensor& images) {
  const double usual = torch::nn::BatchNormOptions(1).momentum().value();
  set_momentum(*network.module, 1);
  network.module->train();
  network.forward(images);
  set_momentum(*network.module, usual);
}

NamedTensor in_file(std::string name, const torch::Tensor& tensor) {
  return {std::move(name),
          tensor.sizes().vec(),
          {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())}};
}

void write_passes(const torch_backend::Network& network, const torch::Tensor& inputs,
                  const std::filesystem::path& path) {
  network.module->eval();
  const torch::Tensor outputs = network.forward(inputs).contiguous();
  network.module->train();
  network.forward(inputs);
  std::vector<NamedTensor> tensors{in_file("inputs", inputs), in_file("outputs", outputs)};
  for (const auto& named : torch_backend::untrained_tensors(*network.module)) {
    tensors.push_back(in_file("after." + named.name, named.tensor));
  }
  write_safetensors(path, {{"libtorch", torch_backend::libtorch_version()}}, tensors);
}

std::span<const float> values(torch_backend::FlatTensors& tensors) {
  flat::FlatVector& vector = tensors.vector();
  return {vector.view(), vector.size()};
}

void write_files(const torch_backend::NetworkSettings& settings,
                 const std::filesystem::path& folder) {
  const torch::NoGradGuard no_grad;
  at::set_num_threads(1);
  torch::manual_seed(7);
  const torch_backend::Network network = torch_backend::build_network(settings);
  draw_all(*network.module);
  const auto& [channels, height, width] = settings.input;
  take_statistics(network, torch::randn({samples, channels, height, width}));
  torch_backend::FlatTensors params(torch_backend::trained_tensors(*network.module), torch::kCPU);
  torch_backend::FlatTensors buffers(torch_backend::untrained_tensors(*network.module),
                                     torch::kCPU);
  const ModelLayout layout{params.layout(), buffers.layout()};
  write_checkpoint(folder / "model.safetensors", {}, settings.name,
                   {.layout = layout, .params = values(params), .buffers = values(buffers)});
  write_passes(network, torch::randn({samples, channels, height, width}),
               folder / "passes.safetensors");
}

}  // namespace
}  // namespace syncopate

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const auto number = [&](int index) {
    return syncopate::number_in<std::uint32_t>(argv[index]).value();
  };
  syncopate::write_files(
      {.name = argv[1], .input = {number(2), number(3), number(3)}, .classes = number(4)}, argv[5]);
  return 0;
}
