#include "torch/optimizers.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/errors.hpp"

namespace syncopate::torch_backend {
namespace {

namespace optim = torch::optim;
using Parameters = std::vector<torch::Tensor>;
using Made = std::unique_ptr<optim::Optimizer>;

Made make_sgd(const OptimizerSpec& spec, Parameters parameters) {
  return std::make_unique<optim::SGD>(
      std::move(parameters), optim::SGDOptions(spec.learning_rate).weight_decay(spec.weight_decay));
}

Made make_momentum(const OptimizerSpec& spec, Parameters parameters) {
  return std::make_unique<optim::SGD>(std::move(parameters),
                                      optim::SGDOptions(spec.learning_rate)
                                          .momentum(spec.momentum)
                                          .weight_decay(spec.weight_decay)
                                          .nesterov(spec.name == "nesterov"));
}

/// Of RMSprop, Adam, AdamW and Adagrad: what all of them have.
template <class Options>
Options adaptive_options(const OptimizerSpec& spec) {
  Options options(spec.learning_rate);
  options.weight_decay(spec.weight_decay);
  if (spec.epsilon) options.eps(*spec.epsilon);
  return options;
}

template <class Optimizer, class Options>
Made make_adam(const OptimizerSpec& spec, Parameters parameters) {
  return std::make_unique<Optimizer>(
      std::move(parameters),
      adaptive_options<Options>(spec).betas(std::make_tuple(spec.beta1, spec.beta2)));
}

Made make_rmsprop(const OptimizerSpec& spec, Parameters parameters) {
  return std::make_unique<optim::RMSprop>(
      std::move(parameters), adaptive_options<optim::RMSpropOptions>(spec).alpha(spec.alpha));
}

Made make_adagrad(const OptimizerSpec& spec, Parameters parameters) {
  return std::make_unique<optim::Adagrad>(std::move(parameters),
                                          adaptive_options<optim::AdagradOptions>(spec));
}

struct Kind {
  const char* name;
  double usual_learning_rate;
  Made (*make)(const OptimizerSpec&, Parameters);
};

constexpr std::array kinds{
    Kind{"sgd", 0.2, make_sgd},
    Kind{"momentum", 0.05, make_momentum},
    Kind{"nesterov", 0.05, make_momentum},
    Kind{"rmsprop", 0.001, make_rmsprop},
    Kind{"adam", 0.001, make_adam<optim::Adam, optim::AdamOptions>},
    Kind{"adamw", 0.001, make_adam<optim::AdamW, optim::AdamWOptions>},
    Kind{"adagrad", 0.01, make_adagrad},
};

const Kind& kind_named(const std::string& name) {
  const auto* const found =
      std::find_if(kinds.begin(), kinds.end(), [&](const Kind& kind) { return kind.name == name; });
  if (found != kinds.end()) return *found;
  throw ConfigError(fmt::format("unknown optimizer \"{}\": expected one of {}", name,
                                fmt::join(optimizer_names(), ", ")));
}

void expect_range(const OptimizerSpec& spec, const char* what, double value, double limit) {
  if (value >= 0 && value < limit) return;  // false for NaN
  throw ConfigError(fmt::format("{} {} of optimizer {}: expected a number from 0 to below {}", what,
                                value, spec.name, limit));
}

}  // namespace

Made make_optimizer(const OptimizerSpec& spec, Parameters parameters) {
  const Kind& kind = kind_named(spec.name);
  expect_range(spec, "learning rate", spec.learning_rate, HUGE_VAL);
  expect_range(spec, "momentum", spec.momentum, 1);
  expect_range(spec, "weight decay", spec.weight_decay, HUGE_VAL);
  expect_range(spec, "beta1", spec.beta1, 1);
  expect_range(spec, "beta2", spec.beta2, 1);
  expect_range(spec, "alpha", spec.alpha, 1);
  expect_range(spec, "epsilon", spec.epsilon.value_or(0), HUGE_VAL);
  if (spec.name == "nesterov" && spec.momentum == 0) {
    throw ConfigError("optimizer nesterov with momentum 0: expected more, or optimizer sgd");
  }
  return kind.make(spec, std::move(parameters));
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const Kind& kind : kinds) names.emplace_back(kind.name);
  return names;
}

double usual_learning_rate(const std::string& optimizer) {
  return kind_named(optimizer).usual_learning_rate;
}

}  // namespace syncopate::torch_backend
