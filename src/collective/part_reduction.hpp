#pragma once

#include <cstdint>

#include "collective/group.hpp"
#include "kernels/values.hpp"

namespace syncopate {

/// The operation that combines the ranks' values at the same index. Bit operations are only for
/// integers.
enum class Reduction : std::uint8_t { sum, product, min, max, bit_and, bit_or, bit_xor };

// Reductions of any type and operation over values in the host's memory, in which every rank
// reduces one part of the vector.
//
// Terms are combined in the order of ranks: floating ones in their own precision, those of bfloat16
// and float16 in float32, rounded once. Integers wrap around.
//
// Shape:     the same type, operation and length on every rank.
// Algorithm: each rank sends its terms of a part to the rank that reduces it: P − 1 messages per
//            rank of n / P values each, one latency.
// Memory:    (P − 1) n / P values.
// Errors:    ConfigError if a bit operation is requested for floating values; PeerLost,
//            RanksMissing, TimedOut, ViewChanged, ProtocolError: what is written is then
//            unspecified.

/// Checks, without messages, that `reduction` can combine values of this type. Errors: ConfigError
/// if a bit operation is requested for floating values.
void expect_combination(const Values& values, Reduction reduction);

/// Replaces `values` by their reduction over all ranks, with the same bits on each: two latencies.
/// For sums of `float` there is `Allreduce`, which knows more algorithms.
void part_allreduce(Group& group, const Values& values, Reduction reduction);

/// On rank r, `mine` becomes block r of the reduction of `values` over all ranks.
/// Shape: `values` is as long as the blocks of all ranks, each as long as `mine`, which may be one
///        of its blocks.
void reduce_scatter(Group& group, const Values& values, const Values& mine, Reduction reduction);

/// Replaces `values` by their reduction over all ranks on rank `root`; the values of the other
/// ranks do not change.
void reduce(Group& group, const Values& values, Reduction reduction, Rank root);

}  // namespace syncopate
