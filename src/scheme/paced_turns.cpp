#include "scheme/paced_turns.hpp"

namespace syncopate {

bool PacedTurns::meets_after(const LocalStep& step) {
  ++steps_;
  const bool meets = is_time();
  line_.report({.round = round_,
                .steps = steps_,
                .samples = step.samples,
                .took = step.took,
                .meets = meets,
                .communicated = step.communicated});
  if (meets) {
    ++round_;
    steps_ = 0;
    first_.meet_after.reset();  // was said of the first round alone
  }
  return meets;
}

std::uint32_t PacedTurns::step_samples() const {
  const PaceOrder order = line_.order();
  const std::uint32_t samples = order.step_samples > 0 ? order.step_samples : first_.step_samples;
  return samples < batch_size_ ? samples : 0;
}

bool PacedTurns::is_time() const {
  const PaceOrder order = line_.order();
  if (order.round == round_ && order.meet_after > 0) {
    return steps_ >= order.meet_after;
  }
  return first_.meet_after && steps_ >= *first_.meet_after;
}

}  // namespace syncopate
