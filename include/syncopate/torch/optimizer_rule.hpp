#pragma once

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <locale>
#include <sstream>
#include <string>
#include <syncopate/error.hpp>
#include <syncopate/torch/flat.hpp>
#include <syncopate/training.hpp>
#include <tuple>
#include <utility>
#include <vector>

namespace syncopate {
inline namespace v0 {
namespace detail {

/// Returns the shortest text that parses to the same value, in every locale.
inline std::string text_of(double value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

inline OptimizerRule rule_with(Options options) {
  OptimizerRule rule;
  rule.options = std::move(options);
  return rule;
}

/// Makes a rule that a server cannot apply. Schemes and codecs use the momentum of an SGD rule.
inline OptimizerRule no_rule(const std::string& reason, double momentum = 0) {
  OptimizerRule rule;
  rule.options = same(momentum, 0)
                     ? Options{{"optimizer", "sgd"}}
                     : Options{{"optimizer", "momentum"}, {"momentum", text_of(momentum)}};
  rule.has_no_rule = reason;
  return rule;
}

constexpr const char* several_rules =
    "it has one rule for all parameters; give all groups the same options";

/// Makes the rule of an optimizer whose groups have different rules.
inline OptimizerRule no_common_rule(const OptimizerRule& one, const OptimizerRule& other) {
  OptimizerRule rule = no_rule(several_rules);
  const auto momentum = one.options.find("momentum");
  if (momentum != one.options.end() && other.options.count("momentum") > 0 &&
      other.options.at("momentum") == momentum->second) {
    rule.options = {{"optimizer", "momentum"}, *momentum};
  }
  rule.learning_rate = one.learning_rate;
  return rule;
}

inline OptimizerRule rule_of(const torch::optim::SGDOptions& options) {
  if (!same(options.dampening(), 0)) {
    return no_rule("its rule has no dampening; set dampening to 0", options.momentum());
  }
  const std::string decay = text_of(options.weight_decay());
  if (same(options.momentum(), 0)) {
    return rule_with({{"optimizer", "sgd"}, {"weight-decay", decay}});
  }
  return rule_with({{"optimizer", options.nesterov() ? "nesterov" : "momentum"},
                    {"momentum", text_of(options.momentum())},
                    {"weight-decay", decay}});
}

/// Makes the rule of Adam or AdamW.
template <class AdamLike>
OptimizerRule rule_of(const char* name, const AdamLike& options) {
  if (options.amsgrad()) {
    return no_rule("its rule has no amsgrad; set amsgrad to false");
  }
  return rule_with({{"optimizer", name},
                    {"beta1", text_of(std::get<0>(options.betas()))},
                    {"beta2", text_of(std::get<1>(options.betas()))},
                    {"epsilon", text_of(options.eps())},
                    {"weight-decay", text_of(options.weight_decay())}});
}

inline OptimizerRule rule_of(const torch::optim::RMSpropOptions& options) {
  if (!same(options.momentum(), 0) || options.centered()) {
    return no_rule("its rule of RMSprop is neither centered nor has it a momentum");
  }
  return rule_with({{"optimizer", "rmsprop"},
                    {"alpha", text_of(options.alpha())},
                    {"epsilon", text_of(options.eps())},
                    {"weight-decay", text_of(options.weight_decay())}});
}

inline OptimizerRule rule_of(const torch::optim::AdagradOptions& options) {
  if (!same(options.lr_decay(), 0) || !same(options.initial_accumulator_value(), 0)) {
    return no_rule("its rule of Adagrad has neither a decay of the rate nor a first sum");
  }
  return rule_with({{"optimizer", "adagrad"},
                    {"epsilon", text_of(options.eps())},
                    {"weight-decay", text_of(options.weight_decay())}});
}

inline OptimizerRule rule_of(const torch::optim::OptimizerOptions& options) {
  namespace optim = torch::optim;
  if (const auto* sgd = dynamic_cast<const optim::SGDOptions*>(&options)) return rule_of(*sgd);
  if (const auto* adam = dynamic_cast<const optim::AdamOptions*>(&options)) {
    return rule_of("adam", *adam);
  }
  if (const auto* adamw = dynamic_cast<const optim::AdamWOptions*>(&options)) {
    return rule_of("adamw", *adamw);
  }
  if (const auto* rmsprop = dynamic_cast<const optim::RMSpropOptions*>(&options)) {
    return rule_of(*rmsprop);
  }
  if (const auto* adagrad = dynamic_cast<const optim::AdagradOptions*>(&options)) {
    return rule_of(*adagrad);
  }
  return no_rule("it knows SGD, RMSprop, Adam, AdamW and Adagrad of libtorch alone");
}

/// Returns the FNV-1a checksum (Fowler, Noll and Vo) of a text; it is never 0.
inline std::uint32_t checksum_of(const std::string& text) {
  std::uint32_t sum = 2166136261U;
  for (const char character : text) {
    sum = (sum ^ static_cast<unsigned char>(character)) * 16777619U;
  }
  return sum == 0 ? 1 : sum;
}

/// True if a group of the optimizer has the parameter.
inline bool has_parameter(const torch::optim::Optimizer& optimizer,
                          const torch::Tensor& parameter) {
  const auto& groups = optimizer.param_groups();
  return std::any_of(groups.begin(), groups.end(), [&](const auto& group) {
    const auto& params = group.params();
    return std::any_of(params.begin(), params.end(),
                       [&](const torch::Tensor& other) { return other.is_same(parameter); });
  });
}

}  // namespace detail

/// Returns the rule of an optimizer as options of `syncopate train`, for a parameter server that
/// applies it. Errors: ConfigError for an optimizer without groups.
inline OptimizerRule rule_of(const torch::optim::Optimizer& optimizer) {
  const auto& groups = optimizer.param_groups();
  if (groups.empty()) {
    throw ConfigError("the optimizer has no group of parameters: make it of module.parameters()");
  }
  OptimizerRule rule = detail::rule_of(groups.front().options());
  rule.learning_rate = groups.front().options().get_lr();
  for (const auto& group : groups) {
    const OptimizerRule other = detail::rule_of(group.options());
    if (other.options != rule.options) {
      rule = detail::no_common_rule(rule, other);
    } else if (!detail::same(group.options().get_lr(), rule.learning_rate)) {
      rule.has_no_rule = detail::several_rules;
    }
  }
  return rule;
}

/// Returns a text with the settings of all groups on which a step depends, besides gradients and
/// state. Rates have six digits, because hosts may compute the last digit of a schedule
/// differently.
inline std::string step_settings_of(const torch::optim::Optimizer& optimizer) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  for (const auto& group : optimizer.param_groups()) {
    text << group.params().size() << " lr " << group.options().get_lr();
    for (const auto& [name, value] : detail::rule_of(group.options()).options) {
      text << ' ' << name << ' ' << value;
    }
    text << '\n';
  }
  return text.str();
}

/// As `rule_of`, for a server that takes steps for all of `trained`.
inline OptimizerRule rule_of(const torch::optim::Optimizer& optimizer,
                             const std::vector<flat::NamedTensor>& trained) {
  OptimizerRule rule = rule_of(optimizer);
  for (const flat::NamedTensor& named : trained) {
    if (!detail::has_parameter(optimizer, named.tensor)) {
      rule.has_no_rule = "it steps the whole module, and " + named.name +
                         " is in no group of the optimizer: freeze that by requires_grad_(false)";
      break;
    }
  }
  return rule;
}

}  // namespace v0
}  // namespace syncopate
