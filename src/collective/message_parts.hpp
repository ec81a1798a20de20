#pragma once

#include <algorithm>
#include <cstddef>

namespace syncopate {

/// The longest message that a node accepts (docs/internals/wire.md).
inline constexpr std::size_t longest_message = std::size_t{1} << 32;

/// Longer blocks are sent in parts.
inline constexpr std::size_t longest_part = std::size_t{1} << 30;

/// Calls `body(begin, count)` for the parts of `bytes` bytes, in order; once if `bytes` is 0. All
/// members of a group that pass the same numbers get the same parts.
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
