#pragma once

#include <span>

#include "collective/group.hpp"

namespace syncopate {

/// Sums `factor` · `values` over all ranks of `group`, in place, and leaves the same bits on every rank.
/// Each rank has a factor of its own.
///
/// Algorithm: recursive halving and doubling (Rabenseifner 2004; Thakur et al. 2005), for P = 2^k ranks:
///            one block of all ranks, as `Halving` tells.
/// Cost:      2 log2 P · α + 2 (P − 1)/P · n β + (P − 1)/P · n γ, of n bytes: the bytes of the ring, with
///            latencies that grow with the logarithm of P.
/// Shape:     as long on every rank; the size of the group is a power of two.
/// Thread:    one collective at a time per group.
/// Errors:    PeerLost (values then unspecified), TimedOut, ViewChanged, ProtocolError; InternalError,
///            for another size.
void butterfly_allreduce(Group& group, std::span<float> values, float factor = 1);

}  // namespace syncopate
