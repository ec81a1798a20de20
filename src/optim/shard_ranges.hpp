#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace syncopate {

/// A contiguous part of a flat vector.
struct ValueRange {
  std::size_t first = 0;
  std::size_t count = 0;

  friend bool operator==(const ValueRange&, const ValueRange&) = default;
};

/// The values of one shard, where `count` values are divided among `shards` in order. Sizes differ by
/// at most one; with more shards than values some are empty.
ValueRange range_of_shard(std::size_t count, std::uint32_t shard, std::uint32_t shards);

template <class Value>
std::span<Value> part(std::span<Value> values, ValueRange range) {
  return values.subspan(range.first, range.count);
}

}  // namespace syncopate
