#include "scheme/local_rounds.hpp"

namespace syncopate {

/// `LocalRounds` of a fixed number of local steps.
const SchemeSpec& local_sgd_scheme() {
  static const SchemeSpec spec{
      .name = "local-sgd",
      .formula = "local steps; every H steps, w = sum(n_i w_i) / N",
      .source = "Stich 2018",
      .colour = "#CC79A7",
      .traits = {.local_steps = true, .takes_means = true},
      .options = {spec_of(option::aggregate), spec_of(option::local_steps),
                  spec_of(option::drift_correction), spec_of(option::local_rate),
                  spec_of(option::global_lr)},
      .resolve = [](SchemeDefaults& defaults) { resolve_rounds(defaults, OuterOptimizer::sgd); },
      .make = make_fixed_rounds};
  return spec;
}

}  // namespace syncopate
