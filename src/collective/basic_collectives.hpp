#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

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

/// The longest message that a node accepts (docs/internals/wire.md).
inline constexpr std::size_t longest_message = std::size_t{1} << 32;

/// Longer blocks are sent in parts.
inline constexpr std::size_t longest_part = std::size_t{1} << 30;

/// Calls `body(begin, count)` for the parts of `bytes` bytes, in order; once if `bytes` is 0. All
/// members of a group that pass the same numbers get the same parts.
template <class Body>
void in_parts(std::size_t bytes, const Body& body, std::size_t longest = longest_part) {
  std::size_t begin = 0;
  do {
    const std::size_t count = std::min(longest, bytes - begin);
    body(begin, count);
    begin += count;
  } while (begin < bytes);
}

}  // namespace syncopate
