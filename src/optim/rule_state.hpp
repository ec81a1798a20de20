#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "optim/shard_ranges.hpp"

namespace syncopate {

/// Everything that an optimizer remembers between steps, for checkpoints.
struct OptimizerState {
  std::map<std::string, std::vector<float>> slots;  ///< "momentum_buffer": one value per parameter
  std::map<std::string, std::int64_t> counters;     ///< "step"
};

/// What a rule remembers of a range of parameters between steps: slots of one value per parameter,
/// all 0 at first, and, if it counts them, its steps.
class RuleMemory {
 public:
  struct Form {
    std::string rule;                          ///< for messages
    std::vector<std::string_view> slots = {};  ///< names, which live as long as the program
    bool counts_steps = false;
  };

  RuleMemory(Form form, std::size_t values);

  /// `range` of the slot at place `slot` of the form.
  std::span<float> part(std::size_t slot, ValueRange range);

  void begin_step() { ++steps_; }
  std::int64_t steps() const { return steps_; }

  OptimizerState state() const;
  /// Goes on from `state`; an empty one is that before the first step.
  /// Errors: DataError, when it is that of another rule or range; nothing has changed then.
  void load(const OptimizerState& state);

 private:
  bool fits(const OptimizerState& state) const;

  Form form_;
  std::vector<std::vector<float>> slots_;
  std::int64_t steps_ = 0;
};

}  // namespace syncopate
