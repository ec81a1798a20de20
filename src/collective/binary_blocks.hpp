#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collective/group.hpp"

namespace syncopate {

/// Replaces `values` by the sum of `factor` · `values` over all ranks of `group`, in place, with
/// the same bits on every rank. Each rank has a factor of its own.
///
/// Algorithm: recursive halving and doubling (Rabenseifner 2004; Thakur et al. 2005), for P = 2^k
///            ranks: all of them form one block, which reduces as `Halving` in the source
///            describes.
/// Cost:      2 log2 P · α + 2 (P − 1)/P · n β + (P − 1)/P · n γ, of n bytes: the bytes of the
///            ring, with latencies that grow with the logarithm of P.
/// Shape:     the same length on every rank; the size of the group is a power of two.
/// Thread:    one collective at a time per group.
/// Errors:    PeerLost (values then unspecified), TimedOut, ViewChanged, ProtocolError;
///            InternalError if the size of the group is no power of two.
void butterfly_allreduce(Group& group, std::span<float> values, float factor = 1);

/// The same for any number of ranks.
///
/// Algorithm: binary blocks (Rabenseifner 2004). The binary digits of P cut the ranks into blocks
///            of powers of two, the largest first: 13 ranks form blocks of 8, 4 and 1. Each block
///            reduces by halves; then position q of a block of B holds the block's result for a
///            B-th of the vector, its share. Shares go up: the smallest block sends its shares to
///            the next larger one, whose positions each add the piece that falls into their own
///            share, and so on; in the largest block they are complete. Complete shares go down:
///            each block sends them to the next smaller one. Last, each block gathers the shares of
///            its positions.
/// Cost:      for a power of two that of a butterfly. Else the block of B waits until the next
///            smaller one, of b, has reduced its own values and sent its shares of n / b bytes; see
///            `CostModel`. For 2^k + 1 ranks about 2 n β, with 2 (k + 1) latencies.
/// Shape, Thread, Errors: as `butterfly_allreduce`, for groups of any size.
void binary_blocks_allreduce(Group& group, std::span<float> values, float factor = 1);

/// B = 2^k neighbouring ranks of a group; position q of the block is rank first + q.
struct RankBlock {
  std::uint32_t first = 0;
  std::uint32_t size = 1;  ///< a power of two
};

/// The binary blocks of a group of this size, the largest first.
std::vector<RankBlock> binary_blocks_of(std::uint32_t ranks);

}  // namespace syncopate
