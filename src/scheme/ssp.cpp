#include "config/option.hpp"
#include "scheme/server_scheme.hpp"

namespace syncopate {

namespace option {

inline constexpr Option<std::uint32_t> slack{
    .name = "slack",
    .group = option_group::server,
    .value = "N",
    .help = "steps that a worker of ssp may be ahead of the slowest",
    .initial = 3,
    .limits = {.most = 1'000'000}};

}  // namespace option

namespace {

ServerPolicy bound_staleness(const OptionValues& options) {
  return {
      .consistency = {.kind = ConsistencyOptions::Kind::bounded, .slack = options[option::slack]}};
}

}  // namespace

/// Stale synchronous parallel: `PushPull`; the server delays answers to bound the staleness
/// (`SspTable`).
const SchemeSpec& ssp_scheme() {
  static const SchemeSpec spec{
      .name = "ssp",
      .formula = "asgd, but no worker is more than the slack ahead of the slowest",
      .source = "Ho et al. 2013",
      .colour = "#DDCC77",
      .traits = {.topology = Topology::server,
                 .sync_mode = SyncMode::asynchronous,
                 .waits_for_slowest = true,
                 .pull = Pull::each_step,
                 .waits_for_steps = true},
      .options = {spec_of(option::slack)},
      .adapt = count_asynchronous_updates,
      .server_policy = bound_staleness,
      .make = make_push_pull};
  return spec;
}

}  // namespace syncopate
