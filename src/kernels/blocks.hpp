#pragma once

#include <algorithm>
#include <cstddef>

namespace syncopate {

/// 64 KiB: the blocks of several vectors fit the second-level cache of a core.
inline constexpr std::size_t values_of_block = 16 * 1024;

/// Calls `work(first, count)` on the blocks of a vector, in order. Several passes over each block
/// take less time than several passes over a vector that no cache holds.
template <class Work>
void in_blocks(std::size_t values, const Work& work) {
  for (std::size_t first = 0; first < values; first += values_of_block) {
    work(first, std::min(values_of_block, values - first));
  }
}

}  // namespace syncopate
