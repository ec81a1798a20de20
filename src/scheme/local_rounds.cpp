#include "scheme/local_rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/errors.hpp"
#include "kernels/blocks.hpp"
#include "kernels/optimizer_steps.hpp"
#include "kernels/reduce.hpp"
#include "scheme/buffer_mean.hpp"

namespace syncopate {
namespace {

constexpr const char* state_of_schedule = "pace";
constexpr const char* state_of_progress = "progress";
constexpr const char* state_of_control = "control";
constexpr const char* velocity_name = "velocity_bits";
constexpr const char* steps_name = "steps";

void assign(std::vector<float>& into, std::span<const float> from) {
  into.assign(from.begin(), from.end());
}

/// Subtracts `before`, then adds `after`. In this order a replica that has not changed since
/// `before` becomes `after` to the last bit.
void replace(std::span<float> values, std::span<const float> before, std::span<const float> after) {
  add_scaled(values, -1, before);
  add(values, after);
}

std::vector<std::byte> packed_state(const UpdateRule& rule) {
  const OptimizerState state = rule.state();
  std::vector<std::byte> bytes;
  const auto append = [&](std::span<const std::byte> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  };
  for (const auto& [name, slot] : state.slots) {
    append(std::as_bytes(std::span(slot)));
  }
  for (const auto& [name, count] : state.counters) {
    append(std::as_bytes(std::span(&count, 1)));
  }
  return bytes;
}

/// Loads the state of a rule of the same kind and length.
void load_packed(UpdateRule& rule, std::span<const std::byte> packed) {
  OptimizerState state = rule.state();
  const auto take = [&](std::span<std::byte> into) {
    std::ranges::copy(packed.first(into.size()), into.begin());
    packed = packed.subspan(into.size());
  };
  for (auto& [name, slot] : state.slots) {
    take(std::as_writable_bytes(std::span(slot)));
  }
  for (auto& [name, count] : state.counters) {
    take(std::as_writable_bytes(std::span(&count, 1)));
  }
  rule.load(state);
}

std::int64_t counter(const OptimizerState& state, const std::string& name) {
  const auto found = state.counters.find(name);
  if (found == state.counters.end()) {
    throw DataError("the state of local progress lacks " + name);
  }
  return found->second;
}

LocalProgress::State progress_in(const OptimizerState& state) {
  const auto velocity = std::bit_cast<double>(counter(state, velocity_name));
  const std::int64_t steps = counter(state, steps_name);
  if (!std::isfinite(velocity) || steps < 0) {
    throw DataError(fmt::format("the state of local progress is damaged: {} steps, velocity {}",
                                steps, velocity));
  }
  return {.velocity = velocity, .steps = static_cast<std::uint64_t>(steps)};
}

/// Plain SGD with rate 1 makes the model the mean of the replicas. With momentum, 0.7 is the rate
/// of DiLoCo, whose workers use AdamW. Where the workers' optimizer has a momentum as well, LeNet-5
/// does not reach 0.85 in five epochs at 0.7 (0.80 and 0.82 in two seeds), but does in two epochs
/// at 0.3.
double usual_global_lr(OuterOptimizer outer, bool workers_have_momentum) {
  if (outer == OuterOptimizer::sgd || outer == OuterOptimizer::gpa) {
    return 1;
  }
  return workers_have_momentum ? 0.3 : 0.7;
}

/// A resumed run begins with the model that was saved; its workers take their steps from another.
void take_trained_model(const SchemeContext& context) {
  const auto found = context.outer_state.slots.find(LocalRounds::trained_model);
  if (found == context.outer_state.slots.end()) {
    return;
  }
  const std::span<float> params = context.replica->view(ReplicaVector::params);
  if (found->second.size() != params.size()) {
    throw DataError(fmt::format("the state of the outer optimizer has {} values; expected {}",
                                found->second.size(), params.size()));
  }
  std::ranges::copy(found->second, params.begin());
  context.replica->store(ReplicaVector::params);
}

}  // namespace

LocalRounds::LocalRounds(Group& group, std::unique_ptr<SyncSchedule> schedule, Options options)
    : AveragingScheme(group, options.averaging),
      clock_(group.world()),
      sync_schedule_(std::move(schedule)),
      options_(std::move(options)),
      round_(options_.done),
      progress_(options_.local),
      mean_(group.transport().shared_memory()),
      background_(averaging_) {
  if (options_.control) {
    control_.emplace(*options_.control);
  }
}

double LocalRounds::rate_factor(std::uint32_t samples) {
  step_factor_ = sync_schedule_->rate_factor(samples);
  return progress_.rate_factor() * step_factor_;
}

Outcome LocalRounds::after_backward(Replica& replica, const StepFacts& facts) {
  initialise(replica);
  const TimePoint begun = clock_.now();
  correct(replica, facts);
  replica.own_step(facts.samples);
  progress_.on_step(step_factor_);
  Outcome outcome{.spent = {.update = clock_.now() - begun},
                  .push_statuses = {{.staleness = background_.under_way() ? 1U : 0U}}};
  accumulate(facts);
  const bool due =
      sync_schedule_->due_after({.samples = facts.samples,
                                 .took = facts.took + outcome.spent.update,
                                 .last = facts.last,
                                 .communicated = std::exchange(communicated_, Duration::zero()),
                                 .ends = facts.requests.stop,
                                 .waits = static_cast<bool>(facts.requests.place)});
  if (background_.finished() || (due && background_.under_way())) {
    outcome.sync_round = finish_background(replica, outcome.spent);
    outcome.exchanges = {background_.taken()};
  }
  if (due && !blocks()) {
    const StepInfo info = contribute(replica, outcome.spent);
    background_.begin(round_, info, sync_values(), period_);
  } else if (due) {
    SyncRound sync_round = synchronize_now(replica, outcome.spent);
    if (outcome.sync_round) {
      sync_round.add_work_of(*outcome.sync_round);
    }
    sync_round.agreed.stop |= last_round_;
    sync_round.agreed.checkpoint |= std::exchange(drains_, false);
    outcome.sync_round = sync_round;
  }
  return outcome;
}

ModelParts LocalRounds::model(Replica& replica) const {
  if (global_.empty()) {
    return Scheme::model(replica);
  }
  if (averaged_ == nullptr) {
    return {.params = global_, .buffers = global_buffers_};
  }
  tested_ = global_;
  averaged_->average(tested_);
  return {.params = tested_, .buffers = global_buffers_};
}

std::map<std::string, OptimizerState> LocalRounds::states() const {
  OptimizerState outer = outer_ ? outer_->state() : options_.outer_state;
  if (averaged_ != nullptr) {
    outer.slots[trained_model] = global_;
  }
  return {{state_of_outer, std::move(outer)}};
}

std::map<std::string, OptimizerState> LocalRounds::worker_states() const {
  auto states = AveragingScheme::worker_states();
  states[state_of_schedule] = sync_schedule_->state();
  const LocalProgress::State& progress = progress_.state();
  states[state_of_progress].counters = {
      {velocity_name, std::bit_cast<std::int64_t>(progress.velocity)},
      {steps_name, static_cast<std::int64_t>(progress.steps)}};
  if (control_) {
    states[state_of_control] = control_->state();
  }
  return states;
}

void LocalRounds::load_worker_states(const std::map<std::string, OptimizerState>& states) {
  AveragingScheme::load_worker_states(states);
  if (const auto schedule = states.find(state_of_schedule); schedule != states.end()) {
    sync_schedule_->load(schedule->second);
  }
  if (const auto found = states.find(state_of_progress); found != states.end()) {
    progress_.resume(progress_in(found->second));
  }
  if (const auto found = states.find(state_of_control); control_ && found != states.end()) {
    control_->load(found->second);
  }
}

/// Before the first step all replicas are equal, so each worker takes its own as the global model.
void LocalRounds::initialise(Replica& replica) {
  if (outer_) {
    return;
  }
  assign(global_, replica.view(ReplicaVector::params));
  assign(global_buffers_, replica.view(ReplicaVector::buffers));
  mean_.resize(global_.size());
  mean_control_.resize(control_ ? global_.size() : 0);
  contributed_.resize(global_.size());
  samples_of_fragments_.resize(options_.fragments);
  if (options_.averaged) {
    auto averaged = std::make_unique<PrimalAveraging>(*options_.averaged, global_.size());
    averaged_ = averaged.get();
    outer_ = std::move(averaged);
  } else {
    outer_ = make_update_rule(options_.outer, global_.size());
  }
  options_.outer_state.slots.erase(trained_model);
  outer_->load(options_.outer_state);
}

void LocalRounds::take_replica(Replica& replica, const AllWorkers& /*workers*/) {
  initialise(replica);
  assign(global_, replica.view(ReplicaVector::params));
  assign(global_buffers_, replica.view(ReplicaVector::buffers));
  contributed_ = global_;
  contributed_buffers_ = global_buffers_;
  outer_->load({});
}

std::optional<SyncRound> LocalRounds::leave(Replica& replica) {
  AveragingScheme::leave(replica);
  if (averaged_ != nullptr) {
    std::ranges::copy(model(replica).params, replica.view(ReplicaVector::params).begin());
    replica.store(ReplicaVector::params);
  }
  return std::nullopt;
}

void LocalRounds::correct(Replica& replica, const StepFacts& facts) {
  if (control_) {
    control_->correct(replica.view(ReplicaVector::grads), facts.samples);
    replica.store(ReplicaVector::grads);
  }
}

void LocalRounds::accumulate(const StepFacts& facts) {
  ++pending_steps_;
  pending_.samples += facts.samples;
  for (std::uint64_t& samples : samples_of_fragments_) {
    samples += facts.samples;
  }
  pending_.loss_sum += facts.loss_sum;
  pending_.paused = facts.paused;
  pending_.requests.merge(facts.requests);
}

/// The part of the round `round_`, and the samples behind its change, which then begin at 0. Where
/// all is synchronized, the fragments have one weight.
ValueRange LocalRounds::next_part() {
  const auto fragments = static_cast<std::uint32_t>(samples_of_fragments_.size());
  if (fragments == 1 || blocks()) {
    samples_behind_ =
        std::accumulate(samples_of_fragments_.begin(), samples_of_fragments_.end(), 0ULL);
    std::ranges::fill(samples_of_fragments_, 0);
    return {.first = 0, .count = global_.size()};
  }
  const auto fragment = static_cast<std::uint32_t>(round_.value % fragments);
  samples_behind_ = std::exchange(samples_of_fragments_[fragment], 0);
  return range_of_shard(global_.size(), fragment, fragments);
}

void LocalRounds::save_change(std::span<float> params) {
  in_blocks(part_.count, [&](std::size_t first, std::size_t count) {
    const ValueRange block{.first = part_.first + first, .count = count};
    const std::span<float> change = part(mean_.all(), block);
    std::ranges::copy(part(params, block), part(std::span(contributed_), block).begin());
    std::ranges::copy(part(params, block), change.begin());
    add_scaled(change, -1, part(std::span(global_), block));
  });
}

/// Saves a copy of the replica's part, writes Δ_i to `mean_`, and returns the step info of the
/// round.
StepInfo LocalRounds::contribute(Replica& replica, Spent& spent) {
  const TimePoint begun = clock_.now();
  round_.value += std::exchange(period_, sync_schedule_->period());
  part_ = next_part();
  save_change(replica.view(ReplicaVector::params));
  assign(contributed_buffers_, replica.view(ReplicaVector::buffers));
  mean_buffers_ = contributed_buffers_;
  if (control_) {
    control_->contribute(mean_control_);
  }
  const double progress = progress_.finish_round();
  if (options_.averaging.weights == Weights::data) {
    pending_.progress = progress;
  }
  requested_ = pending_.requests;
  contribution_ = {.steps = std::exchange(pending_steps_, 0), .samples = pending_.samples};
  contributing_ = clock_.now() - begun;
  spent.communicate += contributing_;
  return std::exchange(pending_, {});
}

/// Takes a step of the outer optimizer if `moves`, and applies the new model to the replica.
void LocalRounds::move_model(bool moves, std::span<float> params) {
  if (moves) {
    if (averaged_ != nullptr) {
      averaged_->begin_round((round_.value - 1) / options_.fragments + 1);
    }
    outer_->begin_step(options_.outer_rate);
  }
  in_blocks(part_.count, [&](std::size_t first, std::size_t count) {
    const ValueRange block{.first = part_.first + first, .count = count};
    const std::span<float> model = part(std::span(global_), block);
    if (moves) {
      outer_->apply(block.first, model, part(mean_.all(), block), -1);
    }
    replace(part(params, block), part(std::span(contributed_), block), model);
  });
}

SyncRound LocalRounds::apply_result(const Averaging::Result& result, Replica& replica,
                                    Spent& spent) {
  const TimePoint begun = clock_.now();
  take_newest(result.newest);
  const bool moves =  // else not even a momentum moves it
      result.newest != Averaging::Newest::unknown && result.has_mean;
  if (moves) {
    global_buffers_ = mean_buffers_;
    if (control_) {
      control_->on_mean(mean_control_);
    }
  }
  move_model(moves, replica.view(ReplicaVector::params));
  take_late_mean(replica.view(ReplicaVector::buffers), contributed_buffers_, global_buffers_);
  replica.store(ReplicaVector::params);
  replica.store(ReplicaVector::buffers);
  const Duration applied = clock_.now() - begun;
  spent.communicate += applied;
  communicated_ = contributing_ + result.communicated + applied;
  SyncRound sync_round = result.round_info.sync_round;
  if (sync_round.agreed.stop || sync_round.agreed.checkpoint) {
    all_continue_after(sync_round.round);
  }
  // In a round without some of the workers nothing is agreed: it is requested again.
  pending_.requests.stop |= requested_.stop && !sync_round.agreed.stop;
  pending_.requests.checkpoint |= requested_.checkpoint && !sync_round.agreed.checkpoint;
  sync_round.own_since = pending_.samples;
  sync_round.own = contribution_;
  return sync_round;
}

/// The values of a round. A worker that may have missed some receives the newest model apart from
/// its own, which is evaluated meanwhile.
SyncValues LocalRounds::sync_values() {
  SyncValues values{.model = part(mean_.all(), part_),
                    .buffers = mean_buffers_,
                    .control = mean_control_,
                    .first = part_.first,
                    .samples = samples_behind_};
  if (options_.averaging.periods) {
    newest_.resize(global_.size());
    newest_state_ = packed_state(*outer_);
    values.newest = {.own = global_, .received = newest_, .state = newest_state_};
  }
  return values;
}

/// Where the newest model is unknown, the replica goes on from what it has, and its next change
/// counts from its last contribution, which is in the mean.
void LocalRounds::take_newest(Averaging::Newest newest) {
  if (newest == Averaging::Newest::received) {
    std::ranges::copy(newest_, global_.begin());
    load_packed(*outer_, newest_state_);
  } else if (newest == Averaging::Newest::unknown) {
    global_ = contributed_;
    global_buffers_ = contributed_buffers_;
  }
}

void LocalRounds::all_continue_after(Round round) {
  round_ = round;
  period_ = 1;
  sync_schedule_->call(round.value + 1);
}

void LocalRounds::restart(const std::vector<std::uint32_t>& periods, Rank self) {
  period_ = self.value < periods.size() ? periods[self.value] : 1;
  sync_schedule_->restart(round_.value, period_);
  averaging_.restart(round_, periods);
}

SyncRound LocalRounds::synchronize_now(Replica& replica, Spent& spent) {
  const StepInfo info = contribute(replica, spent);
  const Averaging::Result result = averaging_.synchronize(round_, info, sync_values(), period_);
  spent.communicate += result.communicated;
  spent.wait += result.round_info.waited;
  return apply_result(result, replica, spent);
}

/// Waits for the round in the background. Only this wait delays the replica. Its last part, up to
/// the duration of the reduction, counts as communication; the rest counts as waiting for other
/// workers.
SyncRound LocalRounds::finish_background(Replica& replica, Spent& spent) {
  const TimePoint asked = clock_.now();
  const Averaging::Result result = background_.take();
  const Duration held_up = clock_.now() - asked;
  const Duration communicating = std::min(held_up, result.communicated);
  spent.communicate += communicating;
  spent.wait += held_up - communicating;
  SyncRound sync_round = apply_result(result, replica, spent);
  last_round_ = std::exchange(sync_round.agreed.stop, false);
  drains_ = std::exchange(sync_round.agreed.checkpoint, false);
  return sync_round;
}

void resolve_rounds(SchemeDefaults& defaults, OuterOptimizer usual) {
  OptionValues& options = defaults.options;
  if (options[option::drift_correction] == DriftCorrection::automatic) {
    options.set(option::drift_correction,
                defaults.skewed ? DriftCorrection::scaffold : DriftCorrection::none);
  }
  if (options[option::local_rate] == LocalRate::automatic) {
    options.set(option::local_rate, defaults.skewed ? LocalRate::round : LocalRate::step);
  }
  if (options[option::outer_optimizer] == OuterOptimizer::automatic) {
    options.set(option::outer_optimizer, usual);
  }
  if (!options[option::global_lr]) {
    options.set(option::global_lr,
                usual_global_lr(options[option::outer_optimizer], defaults.has_momentum));
  }
}

void check_rounds(const SchemeJob& job) {
  if (job.options[option::outer_optimizer] == OuterOptimizer::nesterov &&
      job.options[option::outer_momentum] == 0) {
    throw ConfigError("outer optimizer nesterov needs a momentum above 0; without one it is sgd");
  }
}

std::unique_ptr<Scheme> make_local_rounds(const SchemeContext& context,
                                          std::unique_ptr<SyncSchedule> schedule, bool overlap) {
  const OptionValues& options = context.options;
  LocalRounds::Options rounds{
      .averaging = context.averaging,
      .done = context.done,
      .outer = {.name = std::string(name_of_value(options[option::outer_optimizer])),
                .momentum = options[option::outer_momentum]},
      .outer_rate = options[option::global_lr].value(),
      .outer_state = context.outer_state,
      .overlap = overlap,
      .fragments = options[option::fragments],
      .local = {.momentum = context.momentum,
                .nesterov = context.nesterov,
                .shared_rate = options[option::local_rate] == LocalRate::round}};
  if (options[option::outer_optimizer] == OuterOptimizer::gpa) {
    rounds.averaged = {.average = options[option::outer_average],
                       .point = options[option::outer_point]};
    take_trained_model(context);
  }
  rounds.averaging.ahead = overlap && !schedule->ends_with_the_job();
  if (options[option::drift_correction] == DriftCorrection::scaffold) {
    rounds.control = context.batch_size;
  }
  return std::make_unique<LocalRounds>(context.workers, std::move(schedule), rounds);
}

std::unique_ptr<Scheme> make_fixed_rounds(const SchemeContext& context) {
  return make_local_rounds(
      context, std::make_unique<FixedSchedule>(context.options[option::local_steps]), false);
}

}  // namespace syncopate
