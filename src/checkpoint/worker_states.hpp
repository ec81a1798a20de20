#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "data/batch.hpp"
#include "optim/rule_state.hpp"
#include "wire/control.pb.h"

namespace syncopate {

/// What a worker or a server remembers, by name.
using States = std::map<std::string, OptimizerState>;

/// What one worker's training loop goes on from, beside its replica and its scheme.
struct LoopState {
  std::uint64_t step = 0;   ///< of this worker
  DataPosition position{};  ///< in its part of the data
  double speed_share = 0;   ///< see `SampleEstimate`
  Duration training{};      ///< its training clock

  friend bool operator==(const LoopState&, const LoopState&) = default;
};

/// The name of a loop's state among those of its worker.
inline constexpr const char* state_of_loop = "loop";

OptimizerState to_state(const LoopState& loop);
/// Empty where there is none: in a checkpoint of an older version, or of another number of workers.
/// Errors: DataError, for one that lacks a figure.
std::optional<LoopState> loop_state_in(const States& states);

/// What a pacer goes on with, and back. Errors: DataError, for a state that lacks a figure.
OptimizerState to_state(const wire::PacerMemory& memory);
wire::PacerMemory pacer_memory_in(const OptimizerState& state);

/// "worker.3.": begins the names of a worker's states in a checkpoint.
std::string prefix_of(Rank worker);
/// The same states under the names that they have in a checkpoint.
States in_checkpoint(Rank worker, States states);

/// States as they travel: a safetensors file.
std::vector<std::byte> encode_states(const States& states);
/// Errors: DataError, for damaged bytes.
States decode_states(std::span<const std::byte> bytes);

}  // namespace syncopate
