#include <algorithm>

#include "base/errors.hpp"
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

inline constexpr Option<bool> gradient_table{
    .name = "gradient-table",
    .group = option_group::server,
    .value = "",
    .help =
        "each update of asgd takes the mean of the newest gradients of all workers, so that a "
        "fast worker's data do not count more: for data that differ"};

}  // namespace option

namespace {

/// A gradient of which at most N − 1 updates are unknown shares the work of 2 N − 1 at most.
void adapt_asgd(SchemeTraits& traits, const SchemeJob& job) {
  count_asynchronous_updates(traits, job);
  if (const auto limit = job.options[option::max_delay]) {
    traits.rate_divisor = std::min(traits.rate_divisor, 2.0 * *limit - 1);
  }
}

void check_asgd(const SchemeJob& job) {
  if (job.options[option::gradient_table] && job.options[option::max_delay]) {
    throw ConfigError(
        "gradient-table waits for a gradient of each worker, and max-delay drops those of slow "
        "ones; give one of them");
  }
}

ServerPolicy asgd_policy(const OptionValues& options) {
  ServerPolicy policy{.max_delay = options[option::max_delay]};
  if (options[option::gradient_table]) {
    policy.consistency.kind = ConsistencyOptions::Kind::table;
  }
  return policy;
}

}  // namespace

/// Asynchronous SGD with a parameter server: `PushPull`; the server applies and answers each push
/// at once. With a limit of the delay it drops older gradients (Ringmaster ASGD, Maranjyan et al.
/// 2025): workers whose every gradient is late no longer slow the others' convergence down. With a
/// table of gradients each worker counts alike, however fast it is (`GradientTable`).
const SchemeSpec& asgd_scheme() {
  static const SchemeSpec spec{
      .name = "asgd",
      .formula = "push g_i, which the server applies at once, and pull w",
      .source = "Dean et al. 2012",
      .colour = "#009E73",
      .traits = {.topology = Topology::server,
                 .sync_mode = SyncMode::asynchronous,
                 .pull = Pull::each_step},
      .options = {spec_of(option::max_delay), spec_of(option::gradient_table)},
      .adapt = adapt_asgd,
      .check = check_asgd,
      .server_policy = asgd_policy,
      .make = make_push_pull};
  return spec;
}

}  // namespace syncopate
