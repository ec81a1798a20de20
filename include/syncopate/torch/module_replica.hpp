#pragma once

#include <torch/nn/module.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <syncopate/error.hpp>
#include <syncopate/torch/flat.hpp>
#include <syncopate/torch/wrapped_tensors.hpp>
#include <syncopate/training.hpp>
#include <utility>
#include <vector>

namespace syncopate {
inline namespace v0 {

/// The replica of a module that a program trains in its own loop.
///
/// Parameters and floating-point buffers of the module become views of flat vectors, and stay so
/// after the replica is destroyed. Gradients become views before a step (`collect`). As everywhere
/// in libtorch, a parameter that no backward pass has used has no gradient, and the optimizer does
/// not change it; its part of the flat gradient is zero.
///
/// Frozen parameters, which no step changes, and integer buffers stay with the module. Module and
/// optimizer must outlive every call.
class ModuleReplica final : public Replica {
 public:
  /// Makes the tensors of `module` views of flat vectors; `optimizer` takes the steps.
  /// Errors: ConfigError for a module without trained parameters, on several devices, or not of
  ///         float32; for an optimizer of other parameters, or one that needs a closure.
  ModuleReplica(torch::nn::Module& module, torch::optim::Optimizer& optimizer);

  /// Removes all gradients.
  void zero_gradients();
  /// Copies the gradients of the last backward passes to the flat gradient. Errors: ConfigError if
  /// the module or the optimizer has other tensors than at construction.
  void collect();
  /// As `collect`, for the gradient of one parameter.
  void collect(std::size_t parameter);
  /// 1 for each parameter that has a gradient, else 0.
  std::vector<std::uint8_t> gradient_flags() const;
  /// True while a gradient is the view of the flat gradient that `collect` has set.
  bool has_gradient_in_place(std::size_t parameter) const;
  /// The parameters.
  const std::vector<flat::NamedTensor>& tensors() const { return params_.tensors(); }
  /// The offset of a parameter's first value in the flat vectors.
  std::size_t offset(std::size_t parameter) const { return params_.offset(parameter); }
  /// The flat gradient.
  const torch::Tensor& gradients() const { return grads_.tensor(); }
  /// The program's optimizer.
  const torch::optim::Optimizer& optimizer() const { return optimizer_; }
  /// The learning rates of the optimizer's groups.
  std::vector<double> learning_rates() const;

  std::size_t parameters() const override { return grads_.size(); }
  std::size_t buffers() const override {
    return static_cast<std::size_t>(buffers_.values().numel());
  }
  float* view(syncopate_vector which) override { return vector(which).view(); }
  void store(syncopate_vector which) override { vector(which).store(); }
  bool is_in_host_memory() const override { return params_.values().is_cpu(); }
  void move_into(syncopate_vector which, SharedMemory memory) override {
    if (params_.values().is_cpu()) vector(which).move_into(std::move(memory));
  }
  void take_step(double rate_factor) override;
  std::size_t tensor_count() const override { return params_.tensors().size(); }
  void use_gradients(const std::uint8_t* tensors) override;

 private:
  static torch::Device device_of(const torch::nn::Module& module);
  void expect_parameters_of(const torch::optim::Optimizer& optimizer) const;
  static void expect_in_place(const flat::FlatTensors& tensors);
  /// Returns a parameter's part of the flat gradient. Detached, because `zero_grad` of libtorch 1
  /// fails for a view of autograd.
  torch::Tensor gradient_of(std::size_t parameter) const {
    return params_.slice(grads_.tensor(), parameter).detach();
  }
  void scale_rates(const std::vector<double>& rates, double factor);
  flat::FlatVector& vector(syncopate_vector which) {
    if (which == SYNCOPATE_GRADIENTS) return grads_;
    return which == SYNCOPATE_PARAMETERS ? params_.vector() : buffers_.vector();
  }

  torch::optim::Optimizer& optimizer_;
  detail::WrappedTensors wrapped_;
  flat::FlatTensors params_;
  flat::FlatVector grads_;
  flat::FlatTensors buffers_;
};

inline ModuleReplica::ModuleReplica(torch::nn::Module& module,
                                    torch::optim::Optimizer& optimizer) try
    : optimizer_(optimizer),
      wrapped_(module, optimizer),
      params_(flat::some_trained_tensors(module), device_of(module)),
      grads_(params_.values().numel(), params_.values().device()),
      buffers_(flat::floating_buffers(module), params_.values().device()) {
  if (dynamic_cast<const torch::optim::LBFGS*>(&optimizer) != nullptr) {
    throw ConfigError(
        "LBFGS evaluates the loss again within a step, which a distributed step cannot; choose "
        "another optimizer");
  }
  expect_parameters_of(optimizer);
} catch (const std::invalid_argument& error) {  // from the flat vectors
  throw ConfigError(error.what());
}

/// Returns the device of all tensors of a module. Errors: ConfigError if there are several.
inline torch::Device ModuleReplica::device_of(const torch::nn::Module& module) {
  const std::vector<flat::NamedTensor> params = flat::some_trained_tensors(module);
  const torch::Device device = params.front().tensor.device();
  for (const auto& tensors :
       {params, flat::frozen_tensors(module), flat::floating_buffers(module)}) {
    for (const flat::NamedTensor& named : tensors) {
      if (named.tensor.device() != device) {
        throw ConfigError("a worker trains on one device, but " + params.front().name + " is on " +
                          device.str() + " and " + named.name + " on " +
                          named.tensor.device().str());
      }
    }
  }
  return device;
}

inline void ModuleReplica::expect_parameters_of(const torch::optim::Optimizer& optimizer) const {
  for (const auto& group : optimizer.param_groups()) {
    for (const torch::Tensor& parameter : group.params()) {
      const bool known = std::any_of(
          params_.tensors().begin(), params_.tensors().end(),
          [&](const flat::NamedTensor& named) { return named.tensor.is_same(parameter); });
      if (!known) {
        throw ConfigError("the optimizer has a parameter of " + std::to_string(parameter.numel()) +
                          " values that is none of the module's trained parameters; make "
                          "it of module.parameters()");
      }
    }
  }
}

inline void ModuleReplica::zero_gradients() {
  for (const flat::NamedTensor& named : params_.tensors()) named.tensor.mutable_grad().reset();
}

inline std::vector<std::uint8_t> ModuleReplica::gradient_flags() const {
  std::vector<std::uint8_t> flags;
  for (const flat::NamedTensor& named : params_.tensors()) {
    flags.push_back(named.tensor.grad().defined() ? 1 : 0);
  }
  return flags;
}

inline void ModuleReplica::use_gradients(const std::uint8_t* tensors) {
  for (std::size_t i = 0; i < params_.tensors().size(); ++i) {
    torch::Tensor& grad = params_.tensors()[i].tensor.mutable_grad();
    if (tensors[i] == 0) {
      grad.reset();
    } else if (!has_gradient_in_place(i)) {
      grad = gradient_of(i);
    }
  }
}

/// Checks addresses, because after `set_data` and `to` a tensor is the same object with other
/// memory.
inline void ModuleReplica::expect_in_place(const flat::FlatTensors& tensors) {
  const float* const begin = tensors.values().data_ptr<float>();
  for (std::size_t i = 0; i < tensors.tensors().size(); ++i) {
    const flat::NamedTensor& named = tensors.tensors()[i];
    if (named.tensor.numel() > 0 && named.tensor.data_ptr() != begin + tensors.offset(i)) {
      detail::refuse_replaced(named.name);
    }
  }
}

inline void ModuleReplica::collect() {
  wrapped_.expect_unchanged();
  expect_in_place(params_);
  expect_in_place(buffers_);
  for (std::size_t i = 0; i < params_.tensors().size(); ++i) collect(i);
}

inline bool ModuleReplica::has_gradient_in_place(std::size_t parameter) const {
  const torch::Tensor& grad = params_.tensors()[parameter].tensor.grad();
  const float* const place = grads_.tensor().data_ptr<float>() + params_.offset(parameter);
  return grad.defined() && !grad.is_sparse() && grad.data_ptr() == place;
}

inline void ModuleReplica::collect(std::size_t parameter) {
  if (has_gradient_in_place(parameter)) return;
  const torch::NoGradGuard no_grad;
  const flat::NamedTensor& named = params_.tensors()[parameter];
  const torch::Tensor& grad = named.tensor.grad();
  const torch::Tensor view = gradient_of(parameter);
  if (!grad.defined()) {
    view.zero_();
    return;
  }
  view.copy_(grad.is_sparse() ? grad.to_dense() : grad);
  named.tensor.mutable_grad() = view;
}

inline void ModuleReplica::scale_rates(const std::vector<double>& rates, double factor) {
  auto rate = rates.begin();
  for (auto& group : optimizer_.param_groups()) group.options().set_lr(*rate++ * factor);
}

inline std::vector<double> ModuleReplica::learning_rates() const {
  std::vector<double> rates;
  for (const auto& group : optimizer_.param_groups()) rates.push_back(group.options().get_lr());
  return rates;
}

inline void ModuleReplica::take_step(double rate_factor) {
  if (detail::same(rate_factor, 1)) {
    optimizer_.step();
    return;
  }
  const std::vector<double> rates = learning_rates();
  scale_rates(rates, rate_factor);
  try {
    optimizer_.step();
  } catch (...) {
    scale_rates(rates, 1);
    throw;
  }
  scale_rates(rates, 1);
}

}  // namespace v0
}  // namespace syncopate
