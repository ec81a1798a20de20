#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "server/shard_store.hpp"

namespace syncopate {

/// The state of a shard as it travels to shard 0: a safetensors file.
std::vector<std::byte> encode_state(const ShardState& state);
/// Errors: DataError, for damaged bytes.
ShardState decode_state(std::span<const std::byte> bytes);

}  // namespace syncopate
