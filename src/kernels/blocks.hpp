#pragma once

#include <algorithm>
#include <cstddef>

namespace syncopate {

/// The values of a block: several vectors' blocks stay in a core's second cache.
inline constexpr std::size_t values_of_block = 8192;

/// Calls `work(first, count)` on the blocks of a vector, in order. Several passes over each block
/// take less time than several passes over a vector that no cache holds.
template <class Work>
void in_blocks(std::size_t values, const Work& work) {
  for (std::size_t first = 0; first < values; first += values_of_block) {
    work(first, std::min(values_of_block, values - first));
  }
}

}  // namespace syncopate
