#pragma once

#include <algorithm>
#include <cstdint>

namespace syncopate {

/// `value` without its fraction: 0 if it is negative or NaN, at most 2^63. A plain conversion of a
/// number out of range is undefined, and a peer may send any number.
constexpr std::uint64_t whole_of(double value) {
  constexpr double most = 9223372036854775808.0;
  return value > 0 ? static_cast<std::uint64_t>(std::min(value, most)) : 0;
}

}  // namespace syncopate
