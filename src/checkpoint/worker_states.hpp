#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "data/batch.hpp"
#include "membership/member_link.hpp"
#include "optim/rule_state.hpp"
#include "wire/control.pb.h"

namespace syncopate {

/// The states of a worker or a server, by name.
using States = std::map<std::string, OptimizerState>;

/// The state of one worker's training loop, beside its replica and its scheme.
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
/// Empty if there is none: in a checkpoint of an older version, or of another number of workers.
/// Errors: DataError if a number is missing or impossible.
std::optional<LoopState> loop_state_in(const States& states);

/// The pacer's memory as a state, and back. Errors: DataError, as `loop_state_in`.
OptimizerState to_state(const wire::PacerMemory& memory);
wire::PacerMemory pacer_memory_in(const OptimizerState& state);

/// "worker.3.": the prefix of a worker's states in a checkpoint.
std::string prefix_of(Rank worker);
/// The same states by the names that they have in a checkpoint.
States in_checkpoint(Rank worker, States states);

/// States in a message: a safetensors file.
std::vector<std::byte> encode_states(const States& states);
/// Errors: DataError if the bytes are damaged.
States decode_states(std::span<const std::byte> bytes);

/// Worker 0 writes the states of all workers into a checkpoint of a round at which replicas agree.
/// At that round it calls `gather_states`, and the others call `send_states`.
///
/// Sends this worker's states to worker 0 without waiting.
void send_states(World& world, const View& view, const States& states);

/// Receives the states of all other workers that the job has not dropped, by their names in a
/// checkpoint. Calls `on_loss` repeatedly, since a worker may be dropped meanwhile
/// (`Scheme::agree_after_failures`).
/// Errors: RanksMissing, which names a worker whose states have not arrived within `limit`;
///         DataError; those of `on_loss`.
States gather_states(World& world, MemberLink& link, Duration limit,
                     const std::function<void()>& on_loss);

}  // namespace syncopate
