#pragma once

#include <cstddef>
#include <span>

#include "collective/group.hpp"

namespace syncopate {

/// Gives every rank the blocks of all: block r of `all` is what rank r passed as `mine`.
///
/// Shape:     `mine` is as long on every rank; `all` is size() times as long.
/// Algorithm: everyone sends to everyone, P − 1 messages a rank and one latency: for small blocks,
///            and the only way in which a rank that is missing is known by name.
/// Errors:    RanksMissing (which ranks had not come at the deadline), PeerLost, ViewChanged,
///            ProtocolError.
void allgather(Group& group, std::span<const std::byte> mine, std::span<std::byte> all);

/// Returns when every rank of the group has called it. Errors: those of `allgather`.
void barrier(Group& group);

}  // namespace syncopate
