#include "torch/loop_module.hpp"

#include <fmt/core.h>
#include <torch/optim/lbfgs.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <utility>

#include "base/errors.hpp"
#include "torch/optimizers.hpp"
#include "transport/shared_memory.hpp"

namespace syncopate::torch_backend {
namespace {

/// The device of all tensors of a module. Errors: ConfigError, where they are on several.
torch::Device device_of(const torch::nn::Module& module) {
  const std::vector<NamedTensor> params = some_trained_tensors(module);
  const torch::Device device = params.front().tensor.device();
  for (const auto& tensors : {params, untrained_tensors(module)}) {
    for (const NamedTensor& named : tensors) {
      if (named.tensor.device() != device) {
        throw ConfigError(fmt::format("a worker trains on one device, but {} is on {} and {} on {}",
                                      params.front().name, device.str(), named.name,
                                      named.tensor.device().str()));
      }
    }
  }
  return device;
}

void expect_no_closure(const torch::optim::Optimizer& optimizer) {
  if (dynamic_cast<const torch::optim::LBFGS*>(&optimizer) != nullptr) {
    throw ConfigError(
        "LBFGS evaluates the loss again within a step, which a distributed step cannot; choose "
        "another optimizer");
  }
}

void scale_rates(torch::optim::Optimizer& optimizer, const std::vector<double>& rates,
                 double factor) {
  auto rate = rates.begin();
  for (auto& group : optimizer.param_groups()) group.options().set_lr(*rate++ * factor);
}

}  // namespace

LoopModule::LoopModule(torch::nn::Module& module, torch::optim::Optimizer& optimizer)
    : optimizer_(optimizer),
      params_(some_trained_tensors(module), device_of(module)),
      grads_(params_.values().numel(), params_.values().device()),
      buffers_(untrained_tensors(module), params_.values().device()) {
  expect_no_closure(optimizer);
  expect_parameters_of(optimizer);
  zero_gradients();
}

void LoopModule::expect_parameters_of(const torch::optim::Optimizer& optimizer) const {
  for (const auto& group : optimizer.param_groups()) {
    for (const torch::Tensor& parameter : group.params()) {
      const bool known = std::ranges::any_of(params_.tensors(), [&](const NamedTensor& named) {
        return named.tensor.is_same(parameter);
      });
      if (!known) {
        throw ConfigError(
            fmt::format("the optimizer has a parameter of {} values that is none of the module's "
                        "trained parameters; make it of module.parameters()",
                        parameter.numel()));
      }
    }
  }
}

void LoopModule::zero_gradients() {
  grads_.tensor().zero_();
  for (std::size_t i = 0; i < params_.tensors().size(); ++i) {
    params_.tensors()[i].tensor.mutable_grad() = params_.slice(grads_.tensor(), i);
  }
}

void LoopModule::collect() {
  const torch::NoGradGuard no_grad;
  const float* const params = params_.values().data_ptr<float>();
  const float* const grads = grads_.tensor().data_ptr<float>();
  for (std::size_t i = 0; i < params_.tensors().size(); ++i) {
    const NamedTensor& named = params_.tensors()[i];
    const std::size_t offset = params_.layout()[i].offset;
    if (named.tensor.data_ptr() != params + offset) {
      throw ConfigError(fmt::format(
          "{} is no longer the tensor that the optimizer was made with: do not move or replace "
          "parameters of a module after that",
          named.name));
    }
    const torch::Tensor& grad = named.tensor.grad();
    if (grad.defined() && grad.data_ptr() == grads + offset) continue;
    const torch::Tensor view = params_.slice(grads_.tensor(), i);
    if (!grad.defined()) {
      view.zero_();
    } else if (grad.is_sparse()) {
      throw ConfigError(
          fmt::format("the gradient of {} is sparse; a replica holds dense ones", named.name));
    } else {
      view.copy_(grad);
    }
    named.tensor.mutable_grad() = view;
  }
}

double LoopModule::learning_rate() const {
  return optimizer_.param_groups().front().options().get_lr();
}

void LoopModule::take_step(double rate_factor) {
  if (rate_factor == 1) {
    optimizer_.step();
    return;
  }
  std::vector<double> rates;
  for (const auto& group : optimizer_.param_groups()) rates.push_back(group.options().get_lr());
  scale_rates(optimizer_, rates, rate_factor);
  optimizer_.step();
  scale_rates(optimizer_, rates, 1);
}

std::vector<TensorInfo> LoopModule::layout(ReplicaVector which) const {
  return which == ReplicaVector::buffers ? buffers_.layout() : params_.layout();
}

FlatVector& LoopModule::vector(ReplicaVector which) {
  if (which == ReplicaVector::grads) return grads_;
  return which == ReplicaVector::params ? params_.vector() : buffers_.vector();
}

std::span<float> LoopModule::view(ReplicaVector which) {
  return vector(which).view();
}

void LoopModule::store(ReplicaVector which) {
  vector(which).store();
}

void LoopModule::move_into(SharedMemory& memory) {
  if (!params_.values().is_cpu()) return;
  for (const ReplicaVector which :
       {ReplicaVector::params, ReplicaVector::grads, ReplicaVector::buffers}) {
    if (const std::size_t count = view(which).size(); count > 0) {
      vector(which).move_into(make_values(&memory, count));
    }
  }
}

OptimizerState LoopModule::optimizer_state() const {
  return state_of(optimizer_);
}

void LoopModule::load_optimizer_state(const OptimizerState& state) {
  load_state(optimizer_, state);
}

}  // namespace syncopate::torch_backend
