#include "scheme/paced_schedule.hpp"

namespace syncopate {
namespace {

constexpr const char* step_samples_counter = "step_samples";

}  // namespace

bool PacedSchedule::due_after(const LocalStep& step) {
  ++steps_;
  const bool due = is_due();
  pacer_.report({.round = round_,
                 .steps = steps_,
                 .samples = step.samples,
                 .took = step.took,
                 .meets = due,
                 .communicated = step.communicated});
  if (due) {
    ++round_;
    steps_ = 0;
    first_.meet_after.reset();  // was said of the first round alone
  }
  return due;
}

std::uint32_t PacedSchedule::step_samples() const {
  const std::uint32_t samples = ordered_samples();
  return samples < batch_size_ ? samples : 0;
}

std::uint32_t PacedSchedule::ordered_samples() const {
  const PaceOrder order = pacer_.order();
  return order.step_samples > 0 ? order.step_samples : first_.step_samples;
}

OptimizerState PacedSchedule::state() const {
  return {.slots = {}, .counters = {{step_samples_counter, ordered_samples()}}};
}

/// The pacer goes on with what it knows, so the first round is like any other.
void PacedSchedule::load(const OptimizerState& state) {
  const auto samples = state.counters.find(step_samples_counter);
  if (samples != state.counters.end()) {
    first_ = {.step_samples = static_cast<std::uint32_t>(samples->second), .meet_after = {}};
  }
}

bool PacedSchedule::is_due() const {
  const PaceOrder order = pacer_.order();
  if (order.round == round_ && order.meet_after > 0) {
    return steps_ >= order.meet_after;
  }
  return first_.meet_after && steps_ >= *first_.meet_after;
}

}  // namespace syncopate
