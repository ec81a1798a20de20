#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace syncopate {

/// The nearest bfloat16, ties to even; a finite value stays finite. The codec bf16 makes the same
/// bits.
inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const std::uint32_t sign = bits ^ magnitude;
  constexpr std::uint32_t infinity = 0x7f800000U;
  std::uint32_t half = magnitude > infinity ? 0x7fc00000U : infinity;
  if (magnitude < infinity) {
    half = std::min(magnitude + 0x7fffU + (magnitude >> 16 & 1U), 0x7f7f0000U);
  }
  return static_cast<std::uint16_t>((half | sign) >> 16);
}

inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

}  // namespace syncopate
