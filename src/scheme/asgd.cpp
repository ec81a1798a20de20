#include <algorithm>

#include "config/option.hpp"
#include "scheme/server_scheme.hpp"

namespace syncopate {

namespace option {

inline constexpr Option<std::optional<std::uint32_t>> max_delay{
    .name = "max-delay",
    .group = option_group::server,
    .value = "N",
    .help =
        "asgd drops a gradient that is computed with parameters of N updates ago, or older; all of "
        "a worker's if the others take N steps during one of its own",
    .limits = step_counts,
    .when_unset = "any gradient enters the model"};

}  // namespace option

namespace {

/// A gradient of which at most N − 1 updates are unknown shares the work of 2 N − 1 at most.
void adapt_asgd(SchemeTraits& traits, const SchemeJob& job) {
  count_asynchronous_updates(traits, job);
  if (const auto limit = job.options[option::max_delay]) {
    traits.rate_divisor = std::min(traits.rate_divisor, 2.0 * *limit - 1);
  }
}

ServerPolicy drop_old_gradients(const OptionValues& options) {
  return {.max_delay = options[option::max_delay]};
}

}  // namespace

/// Asynchronous SGD with a parameter server: `PushPull`; the server applies and answers each push
/// at once. With a limit of the delay it drops older gradients (Ringmaster ASGD, Maranjyan et al.
/// 2025): workers whose every gradient is late no longer slow the others' convergence down.
const SchemeSpec& asgd_scheme() {
  static const SchemeSpec spec{.name = "asgd",
                               .formula = "push g_i, which the server applies at once, and pull w",
                               .source = "Dean et al. 2012",
                               .colour = "#009E73",
                               .traits = {.topology = Topology::server,
                                          .sync_mode = SyncMode::asynchronous,
                                          .pull = Pull::each_step},
                               .options = {spec_of(option::max_delay)},
                               .adapt = adapt_asgd,
                               .server_policy = drop_old_gradients,
                               .make = make_push_pull};
  return spec;
}

}  // namespace syncopate
