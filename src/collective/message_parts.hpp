#pragma once

#include <algorithm>
#include <cstddef>

namespace syncopate {

/// A node takes at most 4 GiB in one message (docs/wire.md); blocks beyond this travel in parts.
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
