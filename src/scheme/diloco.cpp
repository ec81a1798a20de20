#include "scheme/local_rounds.hpp"

namespace syncopate {

/// `LocalRounds` of a fixed number of local steps, with an outer optimizer that has a momentum.
const SchemeSpec& diloco_scheme() {
  static const SchemeSpec spec{
      .name = "diloco",
      .formula = "local-sgd, with an outer optimizer on w - sum(n_i w_i) / N",
      .source = "Douillard et al. 2023",
      .colour = "#117733",
      .traits = {.local_steps = true},
      .options = {spec_of(option::aggregate), spec_of(option::local_steps),
                  spec_of(option::outer_optimizer), spec_of(option::outer_momentum),
                  spec_of(option::outer_average), spec_of(option::outer_point),
                  spec_of(option::drift_correction), spec_of(option::local_rate),
                  spec_of(option::global_lr)},
      .check = check_rounds,
      .resolve =
          [](SchemeDefaults& defaults) { resolve_rounds(defaults, OuterOptimizer::nesterov); },
      .make = make_fixed_rounds};
  return spec;
}

}  // namespace syncopate
