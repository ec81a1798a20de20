#include "torch/script_network.hpp"

#include <fmt/core.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/version.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "spec/network_file.hpp"

namespace syncopate::torch_backend {
namespace {

/// The text of an error, from its first visible character on: a compiler's error begins with a line
/// end.
std::string text_of(const std::exception& error) {
  const auto* const own = dynamic_cast<const c10::Error*>(&error);
  const std::string text = own != nullptr ? own->what_without_backtrace() : error.what();
  return text.substr(std::min(text.find_first_not_of(" \n"), text.size()));
}

/// The feature of a later libtorch that a file needs and this one lacks; empty for other errors.
std::string newer_than_this(const std::exception& error) {
  const std::string text = text_of(error);
  for (const std::string_view begin : {"Unknown builtin op: ", "Unknown type name "}) {
    if (text.starts_with(begin)) {
      const std::string name = text.substr(begin.size(), text.find('\n') - begin.size());
      return name.substr(0, name.find_last_not_of('.') + 1);
    }
  }
  return text.find("maximum supported version") != std::string::npos ? "its format" : "";
}

/// libtorch's errors have many lines, with stacks in several languages. The reason follows the last
/// "Error: ", or is the first line.
std::string reason_of(const std::exception& error) {
  const std::string text = text_of(error);
  constexpr std::string_view mark = "Error: ";
  const std::size_t last = text.rfind(mark);
  const std::size_t begin = last == std::string::npos ? 0 : last + mark.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

torch::jit::Module load(const std::string& path) {
  check_network_file(path);
  try {
    return torch::jit::load(path, torch::kCPU);
  } catch (const std::exception& error) {
    if (const std::string lacking = newer_than_this(error); !lacking.empty()) {
      throw ConfigError(
          fmt::format("network {} needs a later libtorch than that of this program, {}, which does "
                      "not know {}: write the file with torch {}, or install syncopate for a later "
                      "torch",
                      path, TORCH_VERSION, lacking, TORCH_VERSION));
    }
    throw ConfigError(
        fmt::format("network {} is not a whole TorchScript file ({}); write it by "
                    "torch.jit.script(module).save(\"{}\")",
                    path, reason_of(error), std::string((*NetworkChoice::of(path)).name)));
  }
}

}  // namespace

ScriptModule::ScriptModule(torch::jit::Module script) : script_(std::move(script)) {
  for (const auto& parameter : script_.named_parameters(/*recurse=*/false)) {
    register_parameter(parameter.name, parameter.value, parameter.value.requires_grad());
  }
  for (const auto& buffer : script_.named_buffers(/*recurse=*/false)) {
    register_buffer(buffer.name, buffer.value);
  }
  for (const auto& child : script_.named_children()) {
    register_module(child.name, std::make_shared<ScriptModule>(child.value));
  }
}

void ScriptModule::train(bool on) {
  torch::nn::Module::train(on);
  if (script_.hasattr("training")) script_.setattr("training", on);
}

torch::Tensor ScriptModule::forward(const torch::Tensor& inputs) {
  const torch::jit::GraphOptimizerEnabledGuard interpreted(false);
  torch::jit::IValue outputs;
  try {
    outputs = script_.forward({inputs});
  } catch (const std::exception& error) {
    throw ConfigError(fmt::format("the network's script failed: {}", reason_of(error)));
  }
  if (outputs.isTensor()) return outputs.toTensor();
  throw ConfigError(
      fmt::format("the network's script returns {}: expected a tensor [samples, classes]",
                  outputs.type()->str()));
}

bool ScriptModule::has_statistics() const {
  return named_buffers(/*recurse=*/false).contains("running_mean") &&
         named_buffers(/*recurse=*/false).contains("running_var");
}

double ScriptModule::momentum() {
  const torch::NoGradGuard no_grad;
  const torch::Tensor mean = named_buffers(/*recurse=*/false)["running_mean"];
  for (const std::size_t dimensions : {2, 4, 5}) {  // of BatchNorm1d, BatchNorm2d, BatchNorm3d
    std::vector<std::int64_t> shape(dimensions, 2);
    shape[1] = mean.numel();
    mean.zero_();
    try {
      forward(torch::ones(shape, mean.options()));
    } catch (const ConfigError&) {
      continue;  // a layer of another dimension
    }
    if (const auto momentum = mean.flatten()[0].item<double>(); momentum > 0) return momentum;
  }
  throw ConfigError(
      "the network's running statistics are not those of a BatchNorm layer; choose --batch-norm "
      "running");
}

Network load_script_network(const std::string& path) {
  const auto module = std::make_shared<ScriptModule>(load(path));
  module->train();
  return network_of(module);
}

}  // namespace syncopate::torch_backend
