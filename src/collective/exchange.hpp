#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collective/group.hpp"

namespace syncopate {

/// Sends a block to every rank, and receives one from each: `from[r]` becomes what rank r passed as
/// `to` of this rank. Nothing is sent for empty blocks.
///
/// Shape:     one block per rank in both lists, including this rank's own; `from[r]` has the length
///            of the block that rank r sends.
/// Algorithm: every rank sends straight to every other: at most P − 1 messages per rank, one
///            latency.
/// Errors:    PeerLost (what is written is then unspecified), RanksMissing, TimedOut, ViewChanged,
///            ProtocolError if a block has another length.
void exchange(Group& group, const std::vector<std::span<const std::byte>>& to,
              const std::vector<std::span<std::byte>>& from);

/// On rank `root`, block r of `all` becomes what rank r passes as `mine`; the other ranks do not
/// use `all`.
void gather(Group& group, std::span<const std::byte> mine, std::span<std::byte> all, Rank root);

/// On rank r, `mine` becomes block r of the `all` that rank `root` passes.
void scatter(Group& group, std::span<const std::byte> all, std::span<std::byte> mine, Rank root);

}  // namespace syncopate
