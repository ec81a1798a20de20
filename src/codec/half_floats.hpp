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

/// The nearest float16 of IEEE 754, ties to even; a value that is too large becomes infinite.
inline std::uint16_t to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const std::uint32_t sign = (bits ^ magnitude) >> 16;
  constexpr std::uint32_t infinity = 0x7f800000U;
  constexpr std::uint32_t rounds_to_infinity = 0x477ff000U;  // 65520
  constexpr std::uint32_t smallest_normal = 0x38800000U;     // 2^-14
  std::uint32_t half = 0;
  if (magnitude > infinity) {
    half = 0x7e00U;
  } else if (magnitude >= rounds_to_infinity) {
    half = 0x7c00U;
  } else if (magnitude < smallest_normal) {
    // The last bit of 0.5 is worth 2^-24, as that of every subnormal float16.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) -
           std::bit_cast<std::uint32_t>(0.5F);
  } else {
    constexpr std::uint32_t bias = (127U - 15U) << 23;
    half = (magnitude - bias + 0xfffU + (magnitude >> 13 & 1U)) >> 13;
  }
  return static_cast<std::uint16_t>(half | sign);
}

inline float from_f16(std::uint16_t bits) {
  const std::uint32_t magnitude = bits & 0x7fffU;
  const std::uint32_t sign = (bits ^ magnitude) << 16;
  constexpr std::uint32_t infinity = 0x7c00U;
  constexpr std::uint32_t smallest_normal = 0x400U;
  std::uint32_t wide = (magnitude << 13) + ((127U - 15U) << 23);
  if (magnitude >= infinity) {
    wide = (magnitude << 13) | 0x7f800000U;
  } else if (magnitude < smallest_normal) {
    wide = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24F);
  }
  return std::bit_cast<float>(wide | sign);
}

}  // namespace syncopate
