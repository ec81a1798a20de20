#include "optim/shard_ranges.hpp"

namespace syncopate {

ValueRange range_of_shard(std::size_t count, std::uint32_t shard, std::uint32_t shards) {
  const std::size_t first = count * shard / shards;
  const std::size_t end = count * (shard + 1) / shards;
  return {first, end - first};
}

}  // namespace syncopate
