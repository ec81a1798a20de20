#include "scheme/local_rounds.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/errors.hpp"
#include "kernels/optimizer_steps.hpp"
#include "kernels/reduce.hpp"

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

/// Takes `before` off and puts `after` on. In this order a replica that has not moved since `before`
/// becomes `after` to the last bit.
void replace(std::span<float> values, std::span<const float> before, std::span<const float> after) {
  add_scaled(values, -1, before);
  add(values, after);
}

std::int64_t counter(const OptimizerState& state, const std::string& name) {
  const auto found = state.counters.find(name);
  if (found == state.counters.end()) {
    throw DataError("the state of local progress lacks " + name);
  }
  return found->second;
}

/// Two meetings that a worker hears of at once: where the last round ends while the sum of the one
/// before was still awaited.
Meeting joined(const std::optional<Meeting>& first, Meeting second) {
  if (first) {
    second.samples += first->samples;
    second.loss_sum += first->loss_sum;
    second.own->steps += first->own->steps;
    second.own->samples += first->own->samples;
  }
  return second;
}

}  // namespace

LocalRounds::LocalRounds(Group& group, std::unique_ptr<SyncSchedule> schedule, Options options)
    : clock_(group.world()),
      averaging_(group, options.averaging),
      sync_schedule_(std::move(schedule)),
      options_(std::move(options)),
      round_(options_.done),
      progress_(options_.local),
      mean_(group.transport().shared_memory()),
      meeting_(averaging_) {
  if (options_.control) {
    control_.emplace(*options_.control);
  }
}

Outcome LocalRounds::after_backward(Replica& replica, const StepFacts& facts) {
  begin_with(replica);
  const TimePoint begun = clock_.now();
  correct(replica, facts);
  replica.local_step();
  progress_.stepped();
  Outcome outcome{.spent = {.update = clock_.now() - begun},
                  .push_statuses = {{.staleness = meeting_.under_way() ? 1U : 0U}}};
  hold(facts);
  const bool meets =
      sync_schedule_->meets_after({.samples = facts.samples,
                                   .took = facts.took + outcome.spent.update,
                                   .last = facts.last,
                                   .communicated = std::exchange(communicated_, Duration::zero())});
  if (meeting_.finished() || (meets && meeting_.under_way())) {
    outcome.meeting = end_meeting(replica, outcome.spent);
  }
  if (meets && !waits()) {
    const StepInfo info = depart(replica);
    meeting_.begin(round_, info, lent());
  } else if (meets) {
    outcome.meeting = joined(outcome.meeting, meet_at_once(replica, outcome.spent));
    outcome.meeting->agreed.stop |= last_round_;
    outcome.meeting->agreed.checkpoint |= std::exchange(drains_, false);
  }
  return outcome;
}

ModelParts LocalRounds::model(Replica& replica) const {
  return global_.empty() ? Scheme::model(replica)
                         : ModelParts{.params = global_, .buffers = global_buffers_};
}

std::map<std::string, OptimizerState> LocalRounds::states() const {
  return {{state_of_outer, outer_ ? outer_->state() : options_.outer_state}};
}

std::map<std::string, OptimizerState> LocalRounds::worker_states() const {
  auto states = averaging_.worker_states();
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
  averaging_.load_worker_states(states);
  if (const auto schedule = states.find(state_of_schedule); schedule != states.end()) {
    sync_schedule_->load(schedule->second);
  }
  if (const auto found = states.find(state_of_progress); found != states.end()) {
    progress_.resume({.velocity = std::bit_cast<double>(counter(found->second, velocity_name)),
                      .steps = static_cast<std::uint64_t>(counter(found->second, steps_name))});
  }
  if (const auto found = states.find(state_of_control); control_ && found != states.end()) {
    control_->load(found->second);
  }
}

std::optional<Meeting> LocalRounds::leave(Replica& /*replica*/) {
  averaging_.leave();
  return std::nullopt;
}

/// All replicas are the same before their first step.
void LocalRounds::begin_with(Replica& replica) {
  if (outer_) {
    return;
  }
  assign(global_, replica.view(Part::params));
  assign(global_buffers_, replica.view(Part::buffers));
  mean_.resize(global_.size());
  mean_control_.resize(control_ ? global_.size() : 0);
  outer_ = make_update_rule(options_.outer, global_.size());
  outer_->load(options_.outer_state);
}

void LocalRounds::correct(Replica& replica, const StepFacts& facts) {
  if (control_) {
    control_->correct(replica.view(Part::grads), facts.samples);
    replica.store(Part::grads);
  }
}

void LocalRounds::hold(const StepFacts& facts) {
  ++held_steps_;
  held_.samples += facts.samples;
  held_.loss_sum += facts.loss_sum;
  held_.paused = facts.paused;
  held_.requests.stop |= facts.requests.stop;
  held_.requests.evaluate |= facts.requests.evaluate;
  held_.requests.checkpoint |= facts.requests.checkpoint;
}

/// Notes down with what the replica goes to its meeting, and makes Δ_i.
StepInfo LocalRounds::depart(Replica& replica) {
  assign(gone_, replica.view(Part::params));
  assign(gone_buffers_, replica.view(Part::buffers));
  std::copy(gone_.begin(), gone_.end(), mean_.all().begin());
  add_scaled(mean_.all(), -1, global_);
  mean_buffers_ = gone_buffers_;
  if (control_) {
    control_->depart(mean_control_);
  }
  const double progress = progress_.take();
  if (options_.averaging.weights == Weights::data) {
    held_.progress = progress;
  }
  ++round_.value;
  gone_with_ = {.steps = std::exchange(held_steps_, 0), .samples = held_.samples};
  return std::exchange(held_, {});
}

Meeting LocalRounds::return_from(const Averaging::Result& met, Replica& replica, Spent& spent) {
  const TimePoint begun = clock_.now();
  outer_->begin_step(options_.outer_rate);
  outer_->apply(0, global_, mean_.all(), -1);
  global_buffers_ = mean_buffers_;
  if (control_) {
    control_->arrived(mean_control_);
  }
  replace(replica.view(Part::params), gone_, global_);
  replace(replica.view(Part::buffers), gone_buffers_, global_buffers_);
  replica.store(Part::params);
  replica.store(Part::buffers);
  const Duration applied = clock_.now() - begun;
  spent.communicate += applied;
  communicated_ = met.communicated + applied;
  Meeting meeting = met.table.meeting;
  meeting.own_since = held_.samples;
  meeting.own = gone_with_;
  return meeting;
}

Meeting LocalRounds::meet_at_once(Replica& replica, Spent& spent) {
  const StepInfo info = depart(replica);
  const Averaging::Result met = averaging_.meet(round_, info, lent());
  spent.communicate += met.communicated;
  spent.wait += met.table.waited;
  return return_from(met, replica, spent);
}

/// Only the end of a meeting in the background holds the replica up: the sum, and before it the others.
Meeting LocalRounds::end_meeting(Replica& replica, Spent& spent) {
  const TimePoint asked = clock_.now();
  const Averaging::Result met = meeting_.take();
  const Duration held_up = clock_.now() - asked;
  const Duration communicating = std::min(held_up, met.communicated);
  spent.communicate += communicating;
  spent.wait += held_up - communicating;
  Meeting meeting = return_from(met, replica, spent);
  last_round_ = std::exchange(meeting.agreed.stop, false);
  drains_ = std::exchange(meeting.agreed.checkpoint, false);
  return meeting;
}

}  // namespace syncopate
