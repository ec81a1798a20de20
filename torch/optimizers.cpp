#include "torch/optimizers.hpp"

#include <fmt/core.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <tuple>
#include <utility>

#include "base/errors.hpp"

namespace syncopate::torch_backend {
namespace {

namespace optim = torch::optim;
using Parameters = std::vector<torch::Tensor>;
using Made = std::unique_ptr<optim::Optimizer>;

Made make_sgd(const OptimizerSettings& settings, Parameters parameters) {
  return std::make_unique<optim::SGD>(
      std::move(parameters),
      optim::SGDOptions(settings.learning_rate).weight_decay(settings.weight_decay));
}

template <bool nesterov>
Made make_sgd_with_momentum(const OptimizerSettings& settings, Parameters parameters) {
  return std::make_unique<optim::SGD>(std::move(parameters),
                                      optim::SGDOptions(settings.learning_rate)
                                          .momentum(settings.momentum)
                                          .weight_decay(settings.weight_decay)
                                          .nesterov(nesterov));
}

constexpr auto make_momentum = make_sgd_with_momentum<false>;
constexpr auto make_nesterov = make_sgd_with_momentum<true>;

/// The options that RMSprop, Adam, AdamW and Adagrad share.
template <class Options>
Options adaptive_options(const OptimizerSettings& settings) {
  Options options(settings.learning_rate);
  options.weight_decay(settings.weight_decay);
  if (settings.epsilon) options.eps(*settings.epsilon);
  return options;
}

template <class Adaptive, class Options>
Made make_adam_like(const OptimizerSettings& settings, Parameters parameters) {
  return std::make_unique<Adaptive>(
      std::move(parameters),
      adaptive_options<Options>(settings).betas(std::make_tuple(settings.beta1, settings.beta2)));
}

constexpr auto make_adam = make_adam_like<optim::Adam, optim::AdamOptions>;
constexpr auto make_adamw = make_adam_like<optim::AdamW, optim::AdamWOptions>;

Made make_rmsprop(const OptimizerSettings& settings, Parameters parameters) {
  return std::make_unique<optim::RMSprop>(
      std::move(parameters),
      adaptive_options<optim::RMSpropOptions>(settings).alpha(settings.alpha));
}

Made make_adagrad(const OptimizerSettings& settings, Parameters parameters) {
  return std::make_unique<optim::Adagrad>(std::move(parameters),
                                          adaptive_options<optim::AdagradOptions>(settings));
}

Made make(const OptimizerSettings& settings, Parameters parameters) {
  switch (settings.optimizer) {
#define OPTIMIZER(name, ...) \
  case Optimizer::name:      \
    return make_##name(settings, std::move(parameters));
#include "optim/optimizers.inc"
#undef OPTIMIZER
  }
  throw InternalError("an optimizer that is not in the list");
}

void expect_range(const OptimizerSettings& settings, const char* what, double value, double limit) {
  if (value >= 0 && value < limit) return;  // false for NaN
  throw ConfigError(fmt::format("{} {} of optimizer {}: expected a number from 0 to below {}", what,
                                value, name_of_value(settings.optimizer), limit));
}

}  // namespace

Made make_optimizer(const OptimizerSettings& settings, Parameters parameters) {
  expect_range(settings, "learning rate", settings.learning_rate, HUGE_VAL);
  expect_range(settings, "momentum", settings.momentum, 1);
  expect_range(settings, "weight decay", settings.weight_decay, HUGE_VAL);
  expect_range(settings, "beta1", settings.beta1, 1);
  expect_range(settings, "beta2", settings.beta2, 1);
  expect_range(settings, "alpha", settings.alpha, 1);
  expect_range(settings, "epsilon", settings.epsilon.value_or(0), HUGE_VAL);
  if (optimizer_spec(settings.optimizer).looks_ahead && settings.momentum == 0) {
    throw ConfigError(fmt::format("optimizer {} with momentum 0: expected more, or optimizer sgd",
                                  name_of_value(settings.optimizer)));
  }
  return make(settings, std::move(parameters));
}

}  // namespace syncopate::torch_backend
