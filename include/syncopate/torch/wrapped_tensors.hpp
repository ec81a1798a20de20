#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/ordered_dict.h>
#include <torch/types.h>

#include <algorithm>
#include <string>
#include <syncopate/error.hpp>
#include <vector>

namespace syncopate {
inline namespace v0 {
namespace detail {

[[noreturn]] inline void refuse_replaced(const std::string& name) {
  throw ConfigError(name +
                    " is no longer the tensor that the optimizer was made with: move a module, and "
                    "replace its parameters, buffers and layers, before DistributedOptimizer; give "
                    "a tensor other values by copy_");
}

/// The tensors that a module and its optimizer have when a replica is made of them. A tensor added
/// later would be in no flat vector: no worker would get its gradient.
///
/// Both must outlive this object.
class WrappedTensors {
 public:
  /// Stores the current tensors of both.
  WrappedTensors(const torch::nn::Module& module, const torch::optim::Optimizer& optimizer);
  /// Errors: ConfigError that names a tensor that was replaced, added, removed, frozen or unfrozen.
  ///         Integer buffers may change.
  void expect_unchanged() const;

 private:
  using Named = torch::OrderedDict<std::string, torch::Tensor>;
  struct Wrapped {
    std::string name;
    torch::Tensor tensor;  ///< kept alive, so that no other tensor gets its address
    bool trained;
  };
  static std::vector<Wrapped> wrapped(const Named& named);
  static bool are_same(const Named& now, const std::vector<Wrapped>& then);
  static void expect_same(const Named& now, const std::vector<Wrapped>& then);
  static void expect_same(const torch::Tensor& now, const Wrapped& then);
  void expect_same_groups() const;

  const torch::nn::Module& module_;
  const torch::optim::Optimizer& optimizer_;
  std::vector<Wrapped> parameters_;
  std::vector<Wrapped> buffers_;
  std::vector<torch::Tensor> of_optimizer_;  ///< in the order of its groups
};

inline WrappedTensors::WrappedTensors(const torch::nn::Module& module,
                                      const torch::optim::Optimizer& optimizer)
    : module_(module),
      optimizer_(optimizer),
      parameters_(wrapped(module.named_parameters())),
      buffers_(wrapped(module.named_buffers())) {
  for (const auto& group : optimizer.param_groups()) {
    of_optimizer_.insert(of_optimizer_.end(), group.params().begin(), group.params().end());
  }
}

inline std::vector<WrappedTensors::Wrapped> WrappedTensors::wrapped(const Named& named) {
  std::vector<Wrapped> tensors;
  for (const auto& item : named) {
    tensors.push_back({item.key(), item.value(), item.value().requires_grad()});
  }
  return tensors;
}

inline void WrappedTensors::expect_unchanged() const {
  // Names are compared only if something differs, because this runs in every step.
  const Named parameters = module_.named_parameters();
  if (!are_same(parameters, parameters_)) expect_same(parameters, parameters_);
  const Named buffers = module_.named_buffers();
  if (!are_same(buffers, buffers_)) expect_same(buffers, buffers_);
  expect_same_groups();
}

inline bool WrappedTensors::are_same(const Named& now, const std::vector<Wrapped>& then) {
  return std::equal(now.begin(), now.end(), then.begin(), then.end(),
                    [](const Named::Item& item, const Wrapped& other) {
                      return item.value().is_same(other.tensor) &&
                             item.value().requires_grad() == other.trained;
                    });
}

inline void WrappedTensors::expect_same(const Named& now, const std::vector<Wrapped>& then) {
  for (const auto& item : now) {
    const auto before = std::find_if(
        then.begin(), then.end(), [&](const Wrapped& other) { return other.name == item.key(); });
    if (before != then.end()) {
      expect_same(item.value(), *before);
    } else if (item.value().is_floating_point()) {
      throw ConfigError(item.key() +
                        " was registered after the optimizer was made, and would stay out of the "
                        "training: register parameters and buffers before DistributedOptimizer");
    }
  }
  for (const Wrapped& before : then) {
    if (!now.contains(before.name)) {
      throw ConfigError(before.name +
                        ", which the optimizer was made with, is no longer in the module: change "
                        "the module before DistributedOptimizer");
    }
  }
}

inline void WrappedTensors::expect_same(const torch::Tensor& now, const Wrapped& then) {
  if (!now.is_same(then.tensor) && now.is_floating_point()) {
    refuse_replaced(then.name);
  }
  if (now.requires_grad() != then.trained) {
    throw ConfigError(then.name + (then.trained ? " was frozen" : " was unfrozen") +
                      " after the optimizer was made: call requires_grad_ before "
                      "DistributedOptimizer, or set the learning rate of its group to 0 as long as "
                      "it is to stay");
  }
}

inline void WrappedTensors::expect_same_groups() const {
  auto before = of_optimizer_.begin();
  for (const auto& group : optimizer_.param_groups()) {
    for (const torch::Tensor& parameter : group.params()) {
      if (before == of_optimizer_.end() || !parameter.is_same(*before++)) {
        throw ConfigError("the optimizer has got a parameter of " +
                          std::to_string(parameter.numel()) +
                          " values that it was not wrapped with: add all groups and parameters "
                          "before DistributedOptimizer");
      }
    }
  }
  if (before != of_optimizer_.end()) {
    throw ConfigError("the optimizer has lost a parameter of " + std::to_string(before->numel()) +
                      " values that it was wrapped with: change its groups before "
                      "DistributedOptimizer");
  }
}

}  // namespace detail
}  // namespace v0
}  // namespace syncopate
