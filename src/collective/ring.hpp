#pragma once

#include <span>

#include "collective/group.hpp"

namespace syncopate {

/// Sums `factor` · `values` over all ranks of `group`, in place, and leaves the same bits on every rank.
/// Each rank has a factor of its own, by which a weighted mean costs no pass over memory more than a
/// sum: every value is scaled where it is touched first.
///
/// Algorithm: ring (Patarasuk & Yuan 2009). The vector is cut into P chunks, chunk c beginning at
///            rank c. In P − 1 steps of reduce-scatter each chunk goes once around the ring, and every
///            rank adds its own part; in P − 1 steps of allgather the sums go around once more.
///            Chunks travel in segments, so that a rank adds one while the next arrives, and passes
///            on each as soon as it is added.
/// Cost:      2 (P − 1) α + 2 (P − 1)/P · n β + (P − 1)/P · n γ, of n bytes. No algorithm moves fewer
///            bytes, and none speaks to fewer peers; the latencies grow with P.
/// Shape:     as long on every rank.
/// Thread:    one collective at a time per group.
/// Errors:    PeerLost (values then unspecified), TimedOut, ViewChanged, ProtocolError.
void ring_allreduce(Group& group, std::span<float> values, float factor = 1);

}  // namespace syncopate
