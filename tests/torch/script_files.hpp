#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>
#include <string>

/// Makes TorchScript modules without Python.
namespace syncopate {

/// Returns a script module with the parameters, buffers and submodules of `like` under the same
/// names, but without a `forward`.
inline torch::jit::Module script_with_tensors_of(const torch::nn::Module& like) {
  torch::jit::Module script("__torch__.Layer");
  script.register_attribute("training", c10::BoolType::get(), true);
  for (const auto& item : like.named_parameters(/*recurse=*/false)) {
    const torch::Tensor own = item.value().detach().clone();
    script.register_parameter(item.key(), own.set_requires_grad(item.value().requires_grad()),
                              /*is_buffer=*/false);
  }
  for (const auto& item : like.named_buffers(/*recurse=*/false)) {
    script.register_buffer(item.key(), item.value().detach().clone());
  }
  for (const auto& child : like.named_children()) {
    script.register_module(child.key(), script_with_tensors_of(*child.value()));
  }
  return script;
}

/// Gives a module with the tensors of a BatchNorm layer its `forward`, with a momentum of 0.1.
inline void define_batch_norm(torch::jit::Module layer) {
  layer.define(R"(
def forward(self, x):
    if self.training:
        self.num_batches_tracked.add_(1)
    return torch.batch_norm(x, self.weight, self.bias, self.running_mean, self.running_var,
                            self.training, 0.1, 1e-5, False)
)");
}

/// Returns a linear layer from `inputs` values to `classes`, whose weights are evenly spaced from
/// −`most` to `most`.
inline torch::jit::Module script_classifier(std::int64_t inputs, std::int64_t classes,
                                            torch::ScalarType type = torch::kFloat32,
                                            double most = 0.1) {
  torch::jit::Module script("__torch__.Classifier");
  const torch::Tensor weight = torch::linspace(-most, most, inputs * classes, type);
  script.register_parameter("weight", weight.view({classes, inputs}).requires_grad_(true), false);
  script.register_parameter("bias", torch::zeros({classes}, type).requires_grad_(true), false);
  script.define(R"(
def forward(self, x):
    return torch.linear(torch.flatten(x, 1), self.weight, self.bias)
)");
  return script;
}

/// Returns a perceptron from `inputs` values to `classes` with one layer of `hidden` units, whose
/// activation, tanh, is smooth.
inline torch::jit::Module script_perceptron(std::int64_t inputs, std::int64_t hidden,
                                            std::int64_t classes) {
  torch::manual_seed(1);
  torch::jit::Module script("__torch__.Perceptron");
  const auto add = [&](const std::string& name, at::IntArrayRef shape) {
    const torch::Tensor values = (torch::rand(shape) - 0.5) * 0.1;
    script.register_parameter(name, values.requires_grad_(true), /*is_buffer=*/false);
  };
  add("weight1", {hidden, inputs});
  add("bias1", {hidden});
  add("weight2", {classes, hidden});
  add("bias2", {classes});
  script.define(R"(
def forward(self, x):
    x = torch.tanh(torch.linear(torch.flatten(x, 1), self.weight1, self.bias1))
    return torch.linear(x, self.weight2, self.bias2)
)");
  return script;
}

}  // namespace syncopate
