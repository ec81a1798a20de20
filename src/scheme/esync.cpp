#include "scheme/esync.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/errors.hpp"

namespace syncopate {
namespace {

constexpr const char* step_samples_counter = "step_samples";

bool overlaps(const OptionValues& options) {
  return options[option::overlap] != Overlap::off;
}

/// Without a server, the remaining workers finish a round without a failed one.
void adapt_esync(SchemeTraits& traits, const SchemeJob& job) {
  traits.regroups = !job.options[option::aggregate].by_server;
}

/// Where parts of the data differ, a momentum over rounds replaces the momentum of local steps,
/// which would carry each replica towards its own part.
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

/// If parts of the data differ, a slow worker's gradient of a few samples counts as much as its
/// share of the data. First steps at the whole learning rate may then cost a model its later
/// accuracy (LeNet-5 on `clusters/mixed.toml` reached 0.80 as late as under `ssgd` in one of ten
/// seeds), so the rate warms up.
void warm_up(SchemeDefaults& defaults) {
  constexpr double part = 0.125;
  if (defaults.skewed && !defaults.warm_up) {
    defaults.warm_up = part * std::min(1.0, defaults.epochs);
  }
}

void resolve_esync(SchemeDefaults& defaults) {
  warm_up(defaults);
  OptionValues& options = defaults.options;
  if (options[option::overlap] == Overlap::automatic && defaults.skewed) {
    options.set(option::overlap, Overlap::off);
  }
  move_momentum_outside(defaults);
  resolve_rounds(defaults, OuterOptimizer::sgd);
}

/// A timed round may have time for only a part of a mini-batch.
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
                          .done = context.done.value,
                          .rule = context.options[option::pacing],
                          .samples_to_do = context.averaging.samples_to_do});
  return make_local_rounds(context, std::move(schedule), overlaps(context.options));
}

}  // namespace

bool PacedSchedule::due_after(const LocalStep& step) {
  ++steps_;
  const bool due = is_due();
  pacer_.report({.round = round_,
                 .steps = steps_,
                 .samples = step.samples,
                 .took = step.took,
                 .synchronizes = due,
                 .communicated = step.communicated,
                 .samples_to_do = samples_to_do_});
  if (due) {
    ++round_;
    steps_ = 0;
    first_.sync_after.reset();  // holds only for the first round
  }
  return due;
}

std::uint32_t PacedSchedule::step_samples() const {
  const std::uint32_t samples = ordered_samples();
  return samples < batch_size_ ? samples : 0;
}

double PacedSchedule::rate_factor(std::uint32_t samples) const {
  const bool whole = rule_ == PaceRule::paper || steps_ == 0;
  return whole ? 1 : std::min(1.0, static_cast<double>(samples) / batch_size_);
}

std::uint32_t PacedSchedule::ordered_samples() const {
  const PaceOrder order = pacer_.order();
  return order.step_samples > 0 ? order.step_samples : first_.step_samples;
}

OptimizerState PacedSchedule::state() const {
  return {.slots = {}, .counters = {{step_samples_counter, ordered_samples()}}};
}

/// The pacer of a resumed run keeps its estimates, so the first round is like any other.
void PacedSchedule::load(const OptimizerState& state) {
  const auto samples = state.counters.find(step_samples_counter);
  if (samples != state.counters.end()) {
    if (samples->second < 0 || samples->second > std::numeric_limits<std::uint32_t>::max()) {
      throw DataError(
          fmt::format("the state of a worker's pace has steps of {} samples", samples->second));
    }
    first_ = {.step_samples = static_cast<std::uint32_t>(samples->second), .sync_after = {}};
  }
}

bool PacedSchedule::is_due() const {
  const PaceOrder order = pacer_.order();
  if (order.round == round_ && order.sync_after > 0) {
    return steps_ >= order.sync_after;
  }
  return first_.sync_after && steps_ >= *first_.sync_after;
}

/// `LocalRounds` with a `PacedSchedule`, so that no device waits for the slowest.
const SchemeSpec& esync_scheme() {
  static const SchemeSpec spec{
      .name = "esync",
      .formula = "local steps until the pacer signals, then w += rate * sum(n_i (w_i - w)) / N",
      .source = "Li et al. 2019",
      .colour = "#0072B2",
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
