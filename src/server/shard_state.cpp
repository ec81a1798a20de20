#include "server/shard_state.hpp"

#include <fmt/format.h>

#include "base/errors.hpp"

namespace syncopate {

std::int64_t counter_in(const OptimizerState& state, const std::string& name) {
  const auto found = state.counters.find(name);
  if (found == state.counters.end()) {
    throw DataError(
        fmt::format("the state of a server lacks {}; was it written by this job?", name));
  }
  return found->second;
}

std::uint64_t count_in(const OptimizerState& state, const std::string& name) {
  const std::int64_t value = counter_in(state, name);
  if (value < 0) {
    throw DataError(fmt::format("the state of a server: {} is {}, which is no count", name, value));
  }
  return static_cast<std::uint64_t>(value);
}

const std::vector<float>& values_in(const OptimizerState& state, const std::string& name,
                                    std::size_t values) {
  const auto found = state.slots.find(name);
  if (found == state.slots.end() || found->second.size() != values) {
    throw DataError(fmt::format("the state of a server has {} values of {}; expected {}",
                                found == state.slots.end() ? 0 : found->second.size(), name,
                                values));
  }
  return found->second;
}

OptimizerState entries_under(const OptimizerState& state, const std::string& prefix) {
  OptimizerState found;
  for (const auto& [name, values] : state.slots) {
    if (name.starts_with(prefix)) {
      found.slots[name.substr(prefix.size())] = values;
    }
  }
  for (const auto& [name, value] : state.counters) {
    if (name.starts_with(prefix)) {
      found.counters[name.substr(prefix.size())] = value;
    }
  }
  return found;
}

void put_under(OptimizerState& state, const std::string& prefix, const OptimizerState& part) {
  for (const auto& [name, values] : part.slots) {
    state.slots[prefix + name] = values;
  }
  for (const auto& [name, value] : part.counters) {
    state.counters[prefix + name] = value;
  }
}

std::string worker_prefix(std::size_t rank) {
  return fmt::format("worker.{}.", rank);
}

}  // namespace syncopate
