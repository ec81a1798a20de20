#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collective/group.hpp"

namespace syncopate {

/// Sends a block to every rank, and receives one from each: `from[r]` becomes what rank r passed as
/// `to` of this rank. Nothing is sent for empty blocks.
///
/// Shape:     one block a rank in both lists, this rank's own among them; a block that arrives is
///            as long as the place for it.
/// Algorithm: every rank sends straight to every other: at most P − 1 messages a rank, one latency.
/// Errors:    PeerLost (what is written is then unspecified), RanksMissing, TimedOut, ViewChanged,
///            ProtocolError, for a block of another length.
void exchange(Group& group, const std::vector<std::span<const std::byte>>& to,
              const std::vector<std::span<std::byte>>& from);

/// Block r of `all` becomes what rank r passes as `mine`, on rank `root`; `all` of the others is
/// not used.
void gather(Group& group, std::span<const std::byte> mine, std::span<std::byte> all, Rank root);

/// `mine` becomes block r of `all` of rank `root`, where this is rank r.
void scatter(Group& group, std::span<const std::byte> all, std::span<std::byte> mine, Rank root);

}  // namespace syncopate
