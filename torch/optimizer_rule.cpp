#include "torch/optimizer_rule.hpp"

#include <fmt/core.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <tuple>

namespace syncopate::torch_backend {
namespace {

namespace optim = torch::optim;

std::string text(double value) {
  return fmt::format("{}", value);
}

OptimizerRule without(const std::string& reason) {
  return {.has_no_rule = reason};
}

OptimizerRule sgd_rule(const optim::SGDOptions& options) {
  if (options.dampening() != 0) {
    return without("its rule has no dampening; set dampening to 0");
  }
  if (options.momentum() == 0) {
    return {.options = {{"optimizer", "sgd"}, {"weight-decay", text(options.weight_decay())}}};
  }
  return {.options = {{"optimizer", options.nesterov() ? "nesterov" : "momentum"},
                      {"momentum", text(options.momentum())},
                      {"weight-decay", text(options.weight_decay())}}};
}

/// Adam and AdamW.
template <class AdamLike>
OptimizerRule adam_rule(const char* name, const AdamLike& options) {
  if (options.amsgrad()) {
    return without("its rule has no amsgrad; set amsgrad to false");
  }
  return {.options = {{"optimizer", name},
                      {"beta1", text(std::get<0>(options.betas()))},
                      {"beta2", text(std::get<1>(options.betas()))},
                      {"epsilon", text(options.eps())},
                      {"weight-decay", text(options.weight_decay())}}};
}

OptimizerRule rmsprop_rule(const optim::RMSpropOptions& options) {
  if (options.momentum() != 0 || options.centered()) {
    return without("its rule of RMSprop is neither centered nor has it a momentum");
  }
  return {.options = {{"optimizer", "rmsprop"},
                      {"alpha", text(options.alpha())},
                      {"epsilon", text(options.eps())},
                      {"weight-decay", text(options.weight_decay())}}};
}

OptimizerRule adagrad_rule(const optim::AdagradOptions& options) {
  if (options.lr_decay() != 0 || options.initial_accumulator_value() != 0) {
    return without("its rule of Adagrad has neither a decay of the rate nor a first sum");
  }
  return {.options = {{"optimizer", "adagrad"},
                      {"epsilon", text(options.eps())},
                      {"weight-decay", text(options.weight_decay())}}};
}

OptimizerRule rule_of(const optim::OptimizerOptions& options) {
  if (const auto* sgd = dynamic_cast<const optim::SGDOptions*>(&options)) return sgd_rule(*sgd);
  if (const auto* adam = dynamic_cast<const optim::AdamOptions*>(&options)) {
    return adam_rule("adam", *adam);
  }
  if (const auto* adamw = dynamic_cast<const optim::AdamWOptions*>(&options)) {
    return adam_rule("adamw", *adamw);
  }
  if (const auto* rmsprop = dynamic_cast<const optim::RMSpropOptions*>(&options)) {
    return rmsprop_rule(*rmsprop);
  }
  if (const auto* adagrad = dynamic_cast<const optim::AdagradOptions*>(&options)) {
    return adagrad_rule(*adagrad);
  }
  return without("it knows SGD, RMSprop, Adam, AdamW and Adagrad of libtorch alone");
}

}  // namespace

OptimizerRule rule_of(const torch::optim::Optimizer& optimizer) {
  const auto& groups = optimizer.param_groups();
  OptimizerRule rule = rule_of(groups.front().options());
  rule.learning_rate = groups.front().options().get_lr();
  for (const auto& group : groups) {
    const OptimizerRule other = rule_of(group.options());
    if (other.options != rule.options || group.options().get_lr() != rule.learning_rate) {
      rule.has_no_rule = "it has one rule for all parameters; give all groups the same options";
    }
  }
  return rule;
}

}  // namespace syncopate::torch_backend
