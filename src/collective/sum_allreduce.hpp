#pragma once

#include <cstdint>
#include <span>

#include "collective/group.hpp"
#include "collective/summable.hpp"

namespace syncopate {

/// Replaces `values` by their sum over all ranks, with the same bits on each.
///
/// Terms are added in the order of ranks: floating ones in their own precision, those of bfloat16
/// in float32, rounded once. Integers wrap around.
///
/// Shape:     `values` has the same length on every rank.
/// Algorithm: every rank sums one part of the vector and sends the sum to all: 2 (P − 1) messages a
///            rank of n / P values each, two latencies. For `float` there is `Allreduce`, which
///            knows more algorithms.
/// Memory:    (P − 1) n / P values beside `values`.
/// Errors:    PeerLost, RanksMissing, TimedOut, ViewChanged, ProtocolError; `values` is then
///            unspecified.
void sum_allreduce(Group& group, std::span<double> values);
void sum_allreduce(Group& group, std::span<std::int32_t> values);
void sum_allreduce(Group& group, std::span<std::int64_t> values);
void sum_allreduce(Group& group, std::span<Bfloat16> values);

}  // namespace syncopate
