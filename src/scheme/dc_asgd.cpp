#include <array>
#include <optional>

#include "config/option.hpp"
#include "scheme/server_scheme.hpp"

namespace syncopate {

/// The weight of a delay: λ, or λ divided by the root of a moving mean of g².
enum class Compensation { constant, adaptive };
constexpr auto names_of(Compensation) {
  return std::to_array<Named<Compensation>>(
      {{"constant", Compensation::constant}, {"adaptive", Compensation::adaptive}});
}

namespace option {

inline constexpr Option<Compensation> compensation{.name = "compensation",
                                                   .group = option_group::server,
                                                   .value = "NAME",
                                                   .help = "how dc-asgd weights a delay",
                                                   .initial = Compensation::adaptive};

inline constexpr Option<std::optional<double>> lambda{
    .name = "lambda",
    .group = option_group::server,
    .value = "X",
    .help = "weight of the delay compensation of dc-asgd",
    .limits = {.most = 1e6},
    .when_unset = "2 adaptive, 0.04 constant"};

}  // namespace option

namespace {

/// Sets λ to the paper's value, if the user left it open.
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

/// `PushPull`; the server applies each push at once, with `DelayCompensation`.
const SchemeSpec& dc_asgd_scheme() {
  static const SchemeSpec spec{
      .name = "dc-asgd",
      .formula = "asgd with g + lambda g*g*(w - w_i), w_i: the parameters of g",
      .source = "Zheng et al. 2017",
      .colour = "#543005",
      .traits = {.topology = Topology::server,
                 .sync_mode = SyncMode::asynchronous,
                 .pull = Pull::each_step},
      .options = {spec_of(option::compensation), spec_of(option::lambda)},
      .adapt = count_asynchronous_updates,
      .resolve = resolve_lambda,
      .server_policy = compensate_delays,
      .make = make_push_pull};
  return spec;
}

}  // namespace syncopate
