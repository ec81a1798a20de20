#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "checkpoint/snapshot.hpp"
#include "server/shard_store.hpp"
#include "transport/transport.hpp"

namespace syncopate {

/// The state of a shard in the message to shard 0: a safetensors file.
std::vector<std::byte> encode_state(const ShardState& state);
/// Errors: DataError if the bytes are damaged.
ShardState decode_state(std::span<const std::byte> bytes);

/// The whole model of a parameter server. Its first shard calls this, after it has asked the others
/// for their states. `servers`: all of them, by shard. Errors: those of the transport; DataError.
ModelSnapshot model_of_shards(MemberLink& link, const std::vector<NodeId>& servers,
                              ShardState first);

}  // namespace syncopate
