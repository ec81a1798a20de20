#pragma once

#include <span>

#include "collective/group.hpp"

namespace syncopate {

/// Sums `values` over all ranks of `group`, in place, and leaves the same bits on every rank.
///
/// Algorithm: ring (Patarasuk & Yuan 2009). The vector is cut into P chunks, chunk c beginning at
///            rank c. In P − 1 steps of reduce-scatter each chunk goes once around the ring, and every
///            rank adds its own part; in P − 1 steps of allgather the sums go around once more.
///            Chunks travel in segments, so that a rank adds one while the next arrives, and passes
///            on each as soon as it is added.
/// Cost:      2 (P − 1) latencies and 2 (P − 1)/P of the bytes, per rank.
/// Shape:     as long on every rank.
/// Thread:    one collective at a time per group.
/// Errors:    PeerLost (values then unspecified), TimedOut, ViewChanged, ProtocolError.
void ring_allreduce(Group& group, std::span<float> values);

/// Replaces `values` by the mean over all ranks, weighted: Σ weight_r · values_r / `total_weight`,
/// where `total_weight` is Σ weight_r, as all ranks know it. A rank of weight 0 adds nothing,
/// whatever its values are.
void weighted_mean(Group& group, std::span<float> values, double weight, double total_weight);

}  // namespace syncopate
