#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "collective/group.hpp"

namespace syncopate {

/// A bfloat16 by its bits.
struct Bfloat16 {
  std::uint16_t bits = 0;

  friend bool operator==(const Bfloat16&, const Bfloat16&) = default;
};

/// Values that can be summed: of float32, float64, int32, int64 or bfloat16. A `std::vector` of
/// these is one.
using Summable = std::variant<std::span<float>, std::span<double>, std::span<std::int32_t>,
                              std::span<std::int64_t>, std::span<Bfloat16>>;

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
