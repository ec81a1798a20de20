#include "scheme/esync.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <string_view>
#include <utility>

#include "base/errors.hpp"

namespace syncopate {
namespace {

constexpr const char* step_samples_counter = "step_samples";

/// A step that lacks a tenth of its samples is whole: parts of a batch fluctuate by a sample.
constexpr double nearly_whole = 0.9;

bool overlaps(const OptionValues& options) {
  return options[option::overlap] != Overlap::off;
}

/// True where the values of a round are reduced by what knows all workers as its members.
bool reduces_elsewhere(const Aggregate& aggregate) {
  return aggregate.by_server || (aggregate.reducer && aggregate.reducer->of_program);
}

/// Without a server, the remaining workers finish a round without a failed one.
void adapt_esync(SchemeTraits& traits, const SchemeJob& job) {
  traits.regroups = !reduces_elsewhere(job.options[option::aggregate]);
  traits.divides_batches = job.options[option::pacing] == PaceRule::timed;
  traits.measures_batches = traits.divides_batches && !job.options[option::min_batch_size];
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

constexpr std::uint32_t usual_max_period = 64;

/// Why every worker has to be in every round; empty: none need.
std::string_view reason_for_full_rounds(const SchemeDefaults& defaults) {
  const OptionValues& options = defaults.options;
  const Aggregate aggregate = options[option::aggregate];
  if (options[option::pacing] == PaceRule::paper) {
    return "--pacing timed, whose rounds have a length";
  }
  if (!overlaps(options)) {
    return "--overlap on, because no worker can wait for one that computes several rounds";
  }
  const bool by_mpi = aggregate.reducer && aggregate.reducer->transport == "mpi";
  if (reduces_elsewhere(aggregate) || by_mpi) {
    return "another --aggregate: a server, MPI or a process group of torch takes the values of all "
           "workers";
  }
  if (defaults.compresses) {
    return "no --compress, whose errors are made good in the next round";
  }
  if (options[option::fragments] > 1) {
    return "--fragments 1, because a worker that misses a round goes on from the whole model";
  }
  if (options[option::drift_correction] == DriftCorrection::scaffold || defaults.skewed) {
    return "a split of the data that is iid, without drift correction";
  }
  return {};
}

/// Errors: ConfigError.
void resolve_max_period(SchemeDefaults& defaults) {
  OptionValues& options = defaults.options;
  const std::string_view reason = reason_for_full_rounds(defaults);
  if (!options[option::max_period]) {
    options.set(option::max_period, reason.empty() ? usual_max_period : 1U);
  }
  const std::uint32_t period = *options[option::max_period];
  if (!std::has_single_bit(period)) {
    throw ConfigError(fmt::format("--max-period {}: expected a power of two", period));
  }
  if (period > 1 && !reason.empty()) {
    throw ConfigError(fmt::format("--max-period {} needs {}", period, reason));
  }
}

/// Errors: ConfigError.
void check_fragments(const SchemeDefaults& defaults) {
  const OptionValues& options = defaults.options;
  const std::uint32_t fragments = options[option::fragments];
  std::string_view need;
  if (options[option::drift_correction] == DriftCorrection::scaffold || defaults.skewed) {
    need = "a split of the data that is iid, without drift correction";
  } else if (!overlaps(options)) {
    need = "--overlap on; without it, no worker knows the last round, which synchronizes all";
  } else if (options[option::aggregate].by_server) {
    need = "another --aggregate: a server takes the whole model";
  }
  if (fragments > 1 && !need.empty()) {
    throw ConfigError(fmt::format("--fragments {} needs {}", fragments, need));
  }
}

/// The replicas of a round are one batch: with 64 samples on each of four fast devices LeNet-5
/// takes twice as long to an accuracy as with 64 on all. A fragment is synchronized once in many
/// rounds, though, and small steps of all these would ruin a model (LeNet-5 diverged in one of
/// three seeds).
void resolve_batch(SchemeDefaults& defaults) {
  const bool timed = defaults.options[option::pacing] == PaceRule::timed;
  const bool open =
      !defaults.global_batch && !defaults.has_batch && defaults.options[option::fragments] == 1;
  if (open && timed && !defaults.skewed && defaults.workers > 1) {
    defaults.global_batch = usual_global_batch(defaults.workers, defaults.has_batch_norm);
  } else if (!defaults.options[option::min_batch_size]) {
    defaults.options.set(option::min_batch_size, 1U);  // a batch that is asked for is kept
  }
  const std::uint32_t least = defaults.options[option::min_batch_size].value_or(1);
  if (least > 1 && !defaults.global_batch) {
    throw ConfigError(fmt::format(
        "--min-batch-size {} needs --global-batch, of which it is the least part", least));
  }
  if (defaults.global_batch && least > *defaults.global_batch) {
    throw ConfigError(fmt::format(
        "--min-batch-size {} is more than the global batch of {}, of which it is the least part; "
        "lower it",
        least, *defaults.global_batch));
  }
}

void resolve_esync(SchemeDefaults& defaults) {
  resolve_batch(defaults);
  warm_up(defaults);
  OptionValues& options = defaults.options;
  if (options[option::overlap] == Overlap::automatic && defaults.skewed) {
    options.set(option::overlap, Overlap::off);
  }
  move_momentum_outside(defaults);
  resolve_rounds(defaults, OuterOptimizer::sgd);
  check_fragments(defaults);
  resolve_max_period(defaults);
}

/// A timed round may have time for only a part of a mini-batch.
std::uint32_t least_step(const OptionValues& options, std::uint32_t batch_size) {
  return options[option::pacing] == PaceRule::timed ? probe_samples(batch_size) : batch_size;
}

void pace(const OptionValues& options, Pacer::Options& pacer) {
  pacer.rule = options[option::pacing];
  pacer.overlap = overlaps(options);
  pacer.longest_period = options[option::max_period].value_or(1);
  pacer.least_part = options[option::min_batch_size].value_or(1);
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
      *context.pacer,
      PacedSchedule::Options{.first = first_pace(context.options[option::pacing],
                                                 context.batch_size, context.least_part),
                             .batch_size = context.batch_size,
                             .done = context.done.value,
                             .rule = context.options[option::pacing],
                             .samples_to_do = context.averaging.samples_to_do});
  SchemeContext rounds = context;
  rounds.averaging.periods = context.options[option::max_period].value_or(1) > 1;
  return make_local_rounds(rounds, std::move(schedule), overlaps(context.options));
}

}  // namespace

bool PacedSchedule::due_after(const LocalStep& step) {
  ++steps_;
  const bool due = is_due();
  if (due) {
    const std::uint32_t wanted = std::max(1U, pacer_.order().period);
    period_ = adopted_period(round_, base_, wanted);
  }
  pacer_.report({.round = round_,
                 .steps = steps_,
                 .samples = step.samples,
                 .took = step.took,
                 .synchronizes = due,
                 .period = due ? period_ : 1,
                 .communicated = step.communicated,
                 .samples_to_do = samples_to_do_,
                 .ends = step.ends,
                 .waits = step.waits});
  if (due) {
    round_ += period_;
    steps_ = 0;
    called_early_ = false;
    first_.sync_after.reset();  // holds only for the first round
  }
  return due;
}

void PacedSchedule::call(std::uint64_t round) {
  called_early_ = round < round_;
  round_ = round;
  base_ = round;
}

void PacedSchedule::restart(std::uint64_t last, std::uint32_t period) {
  base_ = last;
  round_ = last + period;
  period_ = period;
  called_early_ = false;
}

std::uint32_t PacedSchedule::step_samples() const {
  const std::uint32_t samples = ordered_samples();
  return samples < batch_size_ ? samples : 0;
}

double PacedSchedule::rate_factor(std::uint32_t samples) const {
  const std::uint32_t part = pacer_.order().whole;
  const bool second = steps_ == 1 && part > 0 && samples >= nearly_whole * part;
  const bool whole = rule_ == PaceRule::paper || steps_ == 0 || second;
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
  if (called_early_) {
    return true;
  }
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
                  spec_of(option::outer_momentum), spec_of(option::outer_average),
                  spec_of(option::outer_point), spec_of(option::drift_correction),
                  spec_of(option::local_rate), spec_of(option::global_lr), spec_of(option::pacing),
                  spec_of(option::round_time), spec_of(option::max_period),
                  spec_of(option::min_batch_size), spec_of(option::fragments),
                  spec_of(option::pacing_margin), spec_of(option::overlap)},
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
