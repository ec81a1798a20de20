#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "optim/rule_state.hpp"

namespace syncopate {

/// The state of a shard in a checkpoint: with it a shard resumes as if it had never stopped.
struct ShardState {
  std::vector<float> params;
  std::vector<float> buffers;  ///< the mean over workers
  OptimizerState rest;         ///< the rule's state, counts, and the slots of the workers
};

/// The names of a worker's entries begin with this: "worker.2.".
std::string worker_prefix(std::size_t rank);

/// Errors: DataError, if the state has no counter of this name.
std::int64_t counter_in(const OptimizerState& state, const std::string& name);
/// Errors: as `counter_in`; DataError, if it is negative.
std::uint64_t count_in(const OptimizerState& state, const std::string& name);
/// Errors: DataError, if the state has no slot of this name and size.
const std::vector<float>& values_in(const OptimizerState& state, const std::string& name,
                                    std::size_t values);

/// The entries whose names begin with `prefix`, without it.
OptimizerState entries_under(const OptimizerState& state, const std::string& prefix);
/// Adds the entries of `part`, with `prefix` before their names.
void put_under(OptimizerState& state, const std::string& prefix, const OptimizerState& part);

}  // namespace syncopate
