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

/// The values of one shard, where `count` values are divided among `shards` in order. The sizes of
/// two shards differ by one at most; with more shards than values some are empty.
inline ValueRange range_of_shard(std::size_t count, std::uint32_t shard, std::uint32_t shards) {
  const std::size_t first = count * shard / shards;
  const std::size_t end = count * (shard + 1) / shards;
  return {first, end - first};
}

template <class Value>
std::span<Value> part(std::span<Value> values, ValueRange range) {
  return values.subspan(range.first, range.count);
}

}  // namespace syncopate
