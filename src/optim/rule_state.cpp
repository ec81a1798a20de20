#include "optim/rule_state.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/errors.hpp"

namespace syncopate {
namespace {

constexpr const char* step_counter = "step";

std::string summary(const OptimizerState& state) {
  std::vector<std::string> parts;
  for (const auto& [name, slot] : state.slots) {
    parts.push_back(fmt::format("{} of {} values", name, slot.size()));
  }
  for (const auto& [name, count] : state.counters) {
    parts.push_back(fmt::format("{} {}", name, count));
  }
  return parts.empty() ? "nothing" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

RuleMemory::RuleMemory(Form form, std::size_t values)
    : form_(std::move(form)), slots_(form_.slots.size(), std::vector<float>(values)) {}

std::span<float> RuleMemory::part(std::size_t slot, ValueRange range) {
  return syncopate::part(std::span(slots_[slot]), range);
}

OptimizerState RuleMemory::state() const {
  OptimizerState state;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    state.slots[std::string(form_.slots[slot])] = slots_[slot];
  }
  if (form_.counts_steps) state.counters[step_counter] = steps_;
  return state;
}

void RuleMemory::load(const OptimizerState& state) {
  if (state.slots.empty() && state.counters.empty()) {
    *this = RuleMemory(form_, slots_.empty() ? 0 : slots_.front().size());
    return;
  }
  if (!fits(state)) {
    throw DataError(fmt::format(
        "state of {} does not fit: expected state like {}; found {}; use the network and the "
        "optimizer that it was saved with",
        form_.rule, summary(this->state()), summary(state)));
  }
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    slots_[slot] = state.slots.at(std::string(form_.slots[slot]));
  }
  if (form_.counts_steps) steps_ = state.counters.at(step_counter);
}

bool RuleMemory::fits(const OptimizerState& state) const {
  if (state.slots.size() != slots_.size()) return false;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    const auto found = state.slots.find(std::string(form_.slots[slot]));
    if (found == state.slots.end() || found->second.size() != slots_[slot].size()) return false;
  }
  if (!form_.counts_steps) return state.counters.empty();
  const auto counter = state.counters.find(step_counter);
  return state.counters.size() == 1 && counter != state.counters.end() && counter->second >= 0;
}

}  // namespace syncopate
