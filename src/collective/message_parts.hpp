#pragma once

#include <algorithm>
#include <cstddef>

namespace syncopate {

/// What a node takes in one message at most (docs/internals/wire.md).
inline constexpr std::size_t longest_message = std::size_t{1} << 32;

/// Blocks that are longer travel in parts.
inline constexpr std::size_t longest_part = std::size_t{1} << 30;

/// Calls `body(begin, count)` for the parts of `bytes` bytes, in order, once for none. All members
/// of a group that pass the same numbers have the same parts.
template <class Body>
void in_parts(std::size_t bytes, const Body& body, std::size_t longest = longest_part) {
  std::size_t begin = 0;
  do {
    const std::size_t count = std::min(longest, bytes - begin);
    body(begin, count);
    begin += count;
  } while (begin < bytes);
}

}  // namespace syncopate
