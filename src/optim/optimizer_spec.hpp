#pragma once

#include <array>
#include <cstddef>

#include "config/option_values.hpp"

namespace syncopate {

/// The optimizers that `optimizers.inc` declares, of workers and of parameter servers.
enum class Optimizer {
#define OPTIMIZER(name, ...) name,
#include "optim/optimizers.inc"
#undef OPTIMIZER
};

constexpr auto names_of(Optimizer) {
  return std::to_array<Named<Optimizer>>({
#define OPTIMIZER(name, ...) {#name, Optimizer::name},
#include "optim/optimizers.inc"
#undef OPTIMIZER
  });
}

/// The facts about an optimizer that options need without libtorch.
struct OptimizerSpec {
  double usual_learning_rate = 0;  ///< the rate that a job starts with by default
  bool reads_momentum = false;
  bool reads_alpha = false;
  bool reads_betas = false;
  bool reads_epsilon = false;
  bool looks_ahead = false;  ///< Nesterov's momentum, which must be above 0
};

constexpr OptimizerSpec optimizer_spec(Optimizer optimizer) {
  constexpr auto all = std::to_array<OptimizerSpec>({
#define OPTIMIZER(name, ...) {__VA_ARGS__},
#include "optim/optimizers.inc"
#undef OPTIMIZER
  });
  return all.at(static_cast<std::size_t>(optimizer));
}

constexpr double usual_learning_rate(Optimizer optimizer) {
  return optimizer_spec(optimizer).usual_learning_rate;
}

}  // namespace syncopate
