#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

/// A contiguous part of a flat vector.
struct ValueRange {
  std::size_t first = 0;
  std::size_t count = 0;

  friend bool operator==(const ValueRange&, const ValueRange&) = default;
};

/// The range of one shard, if `count` values are divided among `shards` in order. The sizes of two
/// shards differ by one at most; with more shards than values some are empty.
inline ValueRange range_of_shard(std::size_t count, std::uint32_t shard, std::uint32_t shards) {
  const std::size_t first = count * shard / shards;
  const std::size_t end = count * (shard + 1) / shards;
  return {first, end - first};
}

template <class Value>
std::span<Value> part(std::span<Value> values, ValueRange range) {
  return values.subspan(range.first, range.count);
}

/// The state of an optimizer between steps, for checkpoints.
struct OptimizerState {
  std::map<std::string, std::vector<float>> slots;  ///< "momentum_buffer": one value per parameter
  std::map<std::string, std::int64_t> counters;     ///< "step"
};

/// The memory of a rule for a range of parameters: slots of one value per parameter, all 0 at
/// first, and the number of steps, if the rule counts them.
class RuleMemory {
 public:
  struct Form {
    std::string rule;                          ///< for messages
    std::vector<std::string_view> slots = {};  ///< names, which live as long as the program
    bool counts_steps = false;
  };

  RuleMemory(Form form, std::size_t values);

  /// `range` of the slot with this index in the form.
  std::span<float> part(std::size_t slot, ValueRange range);

  void begin_step() { ++steps_; }
  std::int64_t steps() const { return steps_; }

  OptimizerState state() const;
  /// Continues from `state`. An empty state is that before the first step.
  /// Errors: DataError if the state is of another rule or range; the memory is then unchanged.
  void load(const OptimizerState& state);

 private:
  bool fits(const OptimizerState& state) const;

  Form form_;
  std::vector<std::vector<float>> slots_;
  std::int64_t steps_ = 0;
};

}  // namespace syncopate
