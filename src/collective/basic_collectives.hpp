#pragma once

#include <cstddef>
#include <span>

#include "collective/group.hpp"

namespace syncopate {

/// Gives every rank the blocks of all: block r of `all` is what rank r passed as `mine`.
///
/// Shape:     `mine` has the same length on every rank; `all` is size() times as long.
/// Algorithm: every rank sends to every other: P − 1 messages per rank, one latency. It is meant
///            for small blocks, and is the only algorithm that can name the missing ranks.
/// Errors:    RanksMissing (the ranks whose message has not arrived by the deadline), PeerLost,
///            ViewChanged, ProtocolError.
void allgather(Group& group, std::span<const std::byte> mine, std::span<std::byte> all);

/// Returns when every rank of the group has called it. Errors: those of `allgather`.
void barrier(Group& group);

/// Gives every rank the bytes of rank `root`, in place.
///
/// Shape:     `bytes` has the same length on every rank.
/// Algorithm: binomial tree, ranks counted from `root`: in step k, those below 2^k send to those
///            2^k above; ⌈log2 P⌉ steps.
/// Errors:    PeerLost (the bytes are then unspecified), TimedOut, ViewChanged, ProtocolError.
void broadcast(Group& group, std::span<std::byte> bytes, Rank root = Rank{0});
void broadcast(Group& group, std::span<float> values);

}  // namespace syncopate
