#include "scheme/esync.hpp"

#include <utility>

#include "base/errors.hpp"
#include "scheme/aggregate_option.hpp"
#include "scheme/paced_schedule.hpp"
#include "scheme/round_options.hpp"

namespace syncopate {
namespace {

bool overlaps(const OptionValues& options) {
  return options[option::overlap] != Overlap::off;
}

/// Without a server, the others close a round without a worker that is lost.
void adapt_esync(SchemeTraits& traits, const SchemeJob& job) {
  traits.regroups = job.options[option::aggregate] != Aggregate::server;
}

/// Where parts of the data differ, a momentum over rounds replaces that of local steps, which would carry each replica
/// towards its own part.
void move_momentum_outside(SchemeDefaults& defaults) {
  OptionValues& options = defaults.options;
  if (!defaults.skewed || options[option::outer_optimizer] != OuterOptimizer::automatic ||
      !defaults.has_momentum || defaults.momentum == 0) {
    return;
  }
  const Optimizer moved = std::exchange(defaults.optimizer, Optimizer::sgd);
  defaults.has_momentum = false;
  options.set(option::outer_optimizer, value_named<OuterOptimizer>(name_of_value(moved)));
  options.set(option::outer_momentum, defaults.momentum);
  options.set(option::global_lr, options[option::global_lr].value_or(1));
}

void resolve_esync(SchemeDefaults& defaults) {
  OptionValues& options = defaults.options;
  if (options[option::overlap] == Overlap::automatic && defaults.skewed) {
    options.set(option::overlap, Overlap::off);
  }
  move_momentum_outside(defaults);
  resolve_rounds(defaults, OuterOptimizer::sgd);
}

/// A timed round may have room for a part of a mini-batch only.
std::uint32_t least_step(const OptionValues& options, std::uint32_t batch_size) {
  return options[option::pacing] == PaceRule::timed ? probe_samples(batch_size) : batch_size;
}

void pace(const OptionValues& options, Pacer::Options& pacer) {
  pacer.rule = options[option::pacing];
  pacer.overlap = overlaps(options);
  if (const auto seconds = options[option::round_time]) {
    pacer.round_time = from_seconds(*seconds);
  }
  if (const auto seconds = options[option::pacing_margin]) {
    pacer.margin = from_seconds(*seconds);
  }
}

std::unique_ptr<Scheme> make_esync(const SchemeContext& context) {
  if (context.pacer == nullptr) {
    throw InternalError("the scheme esync was made without a pacer");
  }
  auto schedule = std::make_unique<PacedSchedule>(
      *context.pacer, PacedSchedule::Options{
                          .first = first_pace(context.options[option::pacing], context.batch_size),
                          .batch_size = context.batch_size,
                          .done = context.done.value});
  return make_local_rounds(context, std::move(schedule), overlaps(context.options));
}

}  // namespace

/// `LocalRounds`, whose rounds a pacer closes, so that no device waits for the slowest.
const SchemeSpec& esync_scheme() {
  static const SchemeSpec spec{
      .name = "esync",
      .formula = "local steps until the pacer says ready, then w += rate * sum(n_i (w_i - w)) / N",
      .source = "Li et al. 2019",
      .traits = {.sync_mode = SyncMode::local_rounds, .local_steps = true, .parts_by_speed = true},
      .options = {spec_of(option::aggregate), spec_of(option::outer_optimizer),
                  spec_of(option::outer_momentum), spec_of(option::drift_correction),
                  spec_of(option::local_rate), spec_of(option::global_lr), spec_of(option::pacing),
                  spec_of(option::round_time), spec_of(option::pacing_margin),
                  spec_of(option::overlap)},
      .adapt = adapt_esync,
      .check = check_rounds,
      .resolve = resolve_esync,
      .least_step = least_step,
      .way_to_larger_steps = ", or --pacing paper, whose steps are whole batches",
      .pace = pace,
      .make = make_esync};
  return spec;
}

}  // namespace syncopate
