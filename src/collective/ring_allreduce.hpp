#pragma once

#include <span>

#include "collective/group.hpp"

namespace syncopate {

/// Replaces `values` by the sum of `factor` · `values` over all ranks of `group`, in place, with
/// the same bits on every rank. Each rank has a factor of its own: every value is scaled where it
/// is touched first, so a weighted mean takes no further pass over memory.
///
/// Algorithm: ring (Patarasuk & Yuan 2009). The vector is cut into P chunks; chunk c begins at
///            rank c. In P − 1 steps of reduce-scatter each chunk goes once around the ring, and
///            every rank adds its own part; in P − 1 steps of allgather the results go around once
///            more. Chunks travel in segments: a rank adds one while the next arrives, and passes
///            on each as soon as it is added.
/// Cost:      2 (P − 1) α + 2 (P − 1)/P · n β + (P − 1)/P · n γ, of n bytes. No algorithm moves
///            fewer bytes, and none has fewer peers; the latencies grow with P.
/// Shape:     the same length on every rank.
/// Thread:    one collective at a time per group.
/// Errors:    PeerLost (values then unspecified), TimedOut, ViewChanged, ProtocolError.
void ring_allreduce(Group& group, std::span<float> values, float factor = 1);

}  // namespace syncopate
