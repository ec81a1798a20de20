#include <fmt/format.h>

#include "base/errors.hpp"
#include "config/option.hpp"
#include "scheme/server_scheme.hpp"

namespace syncopate {

namespace option {

inline constexpr Option<std::uint32_t> backup_workers{
    .name = "backup-workers",
    .group = option_group::server,
    .value = "N",
    .help = "gradients per step that backup does not wait for",
    .initial = 1,
    .limits = {.most = most_workers}};

}  // namespace option

namespace {

void check_backup_workers(const SchemeJob& job) {
  const std::uint32_t backups = job.options[option::backup_workers];
  if (backups >= job.workers) {
    throw ConfigError(
        fmt::format("{} backup workers of {} workers leave no gradient to wait for; use fewer",
                    backups, job.workers));
  }
}

ServerPolicy close_steps_early(const OptionValues& options) {
  return {.consistency = {.kind = ConsistencyOptions::Kind::backup,
                          .backup_workers = options[option::backup_workers]}};
}

}  // namespace

/// Synchronous SGD with backup workers: `PushPull`; the server closes a step after its first
/// gradients.
const SchemeSpec& backup_scheme() {
  static const SchemeSpec spec{
      .name = "backup",
      .formula = "a step is the mean of its first gradients; those of the last b are dropped",
      .source = "Chen et al. 2016",
      .colour = "#762A83",
      .traits = {.topology = Topology::server,
                 .sync_mode = SyncMode::asynchronous,
                 .pull = Pull::each_step,
                 .waits_for_steps = true},
      .options = {spec_of(option::backup_workers)},
      .check = check_backup_workers,
      .server_policy = close_steps_early,
      .make = make_push_pull};
  return spec;
}

}  // namespace syncopate
