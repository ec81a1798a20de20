#include "torch/unused_tensors.hpp"

#include <fmt/core.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <span>
#include <string>

#include "base/errors.hpp"

namespace syncopate::torch_backend {
namespace {

namespace optim = torch::optim;

constexpr const char* advice =
    "choose --optimizer sgd without a weight decay, freeze the parameter, or train the network by "
    "a loop of your own, where parameters without a gradient stay";

bool any_but_zero(std::span<const float> values) {
  return std::ranges::any_of(values, [](float value) { return value != 0; });
}

}  // namespace

UnusedTensors::UnusedTensors(const optim::Optimizer& optimizer, const FlatTensors& params)
    : params_(params), rule_(rule_of(optimizer)), were_used_(params.tensors().size(), false) {}

/// An optimizer that is not libtorch's may have all of these effects.
UnusedTensors::Rule UnusedTensors::rule_of(const optim::Optimizer& optimizer) {
  const optim::OptimizerOptions& options = optimizer.param_groups().front().options();
  if (const auto* sgd = dynamic_cast<const optim::SGDOptions*>(&options)) {
    return {sgd->weight_decay() != 0, sgd->momentum() != 0, false};
  }
  if (const auto* rmsprop = dynamic_cast<const optim::RMSpropOptions*>(&options)) {
    return {rmsprop->weight_decay() != 0, true, false};
  }
  if (const auto* adagrad = dynamic_cast<const optim::AdagradOptions*>(&options)) {
    return {adagrad->weight_decay() != 0, false, adagrad->lr_decay() != 0};
  }
  if (const auto* adam = dynamic_cast<const optim::AdamOptions*>(&options)) {
    return {adam->weight_decay() != 0, true, true};
  }
  if (const auto* adamw = dynamic_cast<const optim::AdamWOptions*>(&options)) {
    return {adamw->weight_decay() != 0, true, true};
  }
  return {};
}

void UnusedTensors::expect_as_in_torch(const std::vector<bool>& used) {
  for (std::size_t i = 0; i < used.size(); ++i) {
    const std::string& name = params_.tensors()[i].name;
    if (!used[i] && (rule_.decays || (rule_.remembers && were_used_[i]))) {
      throw ConfigError(fmt::format(
          "a pass of the network has not used {}, which the optimizer would move all the same, by "
          "its momentum or weight decay: {}",
          name, advice));
    }
    if (used[i] && !were_used_[i] && rule_.counts && !is_first_) {
      throw ConfigError(fmt::format(
          "a pass of the network has used {}, which passes before have not, and the optimizer "
          "would count those as its steps: {}",
          name, advice));
    }
    were_used_[i] = were_used_[i] || used[i];
  }
  is_first_ = false;
}

void UnusedTensors::continue_from(const OptimizerState& state) {
  is_first_ = state.counters.empty() && state.slots.empty();
  for (std::size_t i = 0; i < were_used_.size(); ++i) {
    const auto length = static_cast<std::size_t>(params_.tensors()[i].tensor.numel());
    were_used_[i] = std::ranges::any_of(state.slots, [&](const auto& slot) {
      return any_but_zero(std::span(slot.second).subspan(params_.offset(i), length));
    });
  }
}

}  // namespace syncopate::torch_backend
