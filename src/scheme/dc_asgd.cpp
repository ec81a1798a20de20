#include "scheme/dc_asgd.hpp"

namespace syncopate {
namespace {

/// The paper's values of λ.
void resolve_lambda(SchemeDefaults& defaults) {
  OptionValues& options = defaults.options;
  if (!options[option::lambda]) {
    const bool adaptive = options[option::compensation] == Compensation::adaptive;
    options.set(option::lambda, adaptive ? 2 : 0.04);
  }
}

ServerPolicy compensate_delays(const OptionValues& options) {
  return {.compensation = DelayCompensation::Options{
              .lambda = options[option::lambda].value(),
              .adaptive = options[option::compensation] == Compensation::adaptive}};
}

}  // namespace

/// `PushPull`, whose pushes the server applies at once, with `DelayCompensation`.
const SchemeSpec& dc_asgd_scheme() {
  static const SchemeSpec spec{
      .name = "dc-asgd",
      .formula = "asgd with g + lambda g*g*(w - w_i), w_i: what the worker computed at",
      .source = "Zheng et al. 2017",
      .traits = {.topology = Topology::server, .sync_mode = SyncMode::asynchronous},
      .options = {spec_of(option::compensation), spec_of(option::lambda)},
      .adapt = count_asynchronous_updates,
      .resolve = resolve_lambda,
      .server_policy = compensate_delays,
      .make = make_push_pull};
  return spec;
}

}  // namespace syncopate
