#pragma once

#include <span>
#include <vector>

#include "collective/halving.hpp"

namespace syncopate {

/// Sums `factor` · `values` over all ranks of `group`, in place, and leaves the same bits on every rank.
/// Each rank has a factor of its own.
///
/// Algorithm: binary blocks (Rabenseifner 2004), for any count of ranks. The binary digits of P cut the
///            ranks into blocks of powers of two, the largest first: 13 ranks make blocks of 8, 4 and 1.
///            Each block adds by halves (`Halving`), after which place q of a block of B holds a B-th of the
///            block's sums. These climb: the smallest block sends its shares to the next larger one, whose
///            places each add the piece that falls into theirs, and so on; where they end, in the
///            largest block, they are complete. Then they descend: each block sends complete shares
///            to the next smaller one. Last, each block gathers what its places hold.
/// Cost:      a power of two is a butterfly. Else the block of B is kept waiting until the next
///            smaller one, of b, has its own sums and has sent its shares of n / b bytes; see `price_of`.
///            For 2^k + 1 ranks about 2 n β, with 2 (k + 1) latencies.
/// Shape:     as long on every rank.
/// Thread:    one collective at a time per group.
/// Errors:    PeerLost (values then unspecified), TimedOut, ViewChanged, ProtocolError.
void binary_blocks_allreduce(Group& group, std::span<float> values, float factor = 1);

/// The blocks of so many ranks, the largest first.
std::vector<Halving::Block> blocks_of(std::uint32_t ranks);

}  // namespace syncopate
