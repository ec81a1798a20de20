#include "scheme/paced_schedule.hpp"

namespace syncopate {
namespace {

constexpr const char* step_samples_counter = "step_samples";

}  // namespace

bool PacedSchedule::meets_after(const LocalStep& step) {
  ++steps_;
  const bool meets = is_time();
  line_.report({.round = round_,
                .steps = steps_,
                .samples = step.samples,
                .took = step.took,
                .synchronizes = meets,
                .communicated = step.communicated});
  if (meets) {
    ++round_;
    steps_ = 0;
    first_.sync_after.reset();  // was said of the first round alone
  }
  return meets;
}

std::uint32_t PacedSchedule::step_samples() const {
  const std::uint32_t samples = told_samples();
  return samples < batch_size_ ? samples : 0;
}

std::uint32_t PacedSchedule::told_samples() const {
  const PaceOrder order = line_.order();
  return order.step_samples > 0 ? order.step_samples : first_.step_samples;
}

OptimizerState PacedSchedule::state() const {
  return {.slots = {}, .counters = {{step_samples_counter, told_samples()}}};
}

/// The pacer goes on with what it knows, so the first round is like any other.
void PacedSchedule::load(const OptimizerState& state) {
  const auto samples = state.counters.find(step_samples_counter);
  if (samples != state.counters.end()) {
    first_ = {.step_samples = static_cast<std::uint32_t>(samples->second), .sync_after = {}};
  }
}

bool PacedSchedule::is_time() const {
  const PaceOrder order = line_.order();
  if (order.round == round_ && order.sync_after > 0) {
    return steps_ >= order.sync_after;
  }
  return first_.sync_after && steps_ >= *first_.sync_after;
}

}  // namespace syncopate
