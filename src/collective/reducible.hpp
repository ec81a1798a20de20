#pragma once

#include <cstdint>
#include <span>
#include <variant>

namespace syncopate {

/// A bfloat16 by its bits.
struct Bfloat16 {
  std::uint16_t bits = 0;

  friend bool operator==(const Bfloat16&, const Bfloat16&) = default;
};

/// A float16 of IEEE 754 by its bits.
struct Float16 {
  std::uint16_t bits = 0;

  friend bool operator==(const Float16&, const Float16&) = default;
};

/// Values that ranks can reduce. A `std::vector` of one of these types is one.
using Reducible = std::variant<std::span<float>, std::span<double>, std::span<std::int32_t>,
                               std::span<std::int64_t>, std::span<Bfloat16>, std::span<Float16>,
                               std::span<std::int8_t>, std::span<std::uint8_t>>;

/// The operation that combines the ranks' values at the same index. Bit operations are only for
/// integers.
enum class Reduction : std::uint8_t { sum, product, min, max, bit_and, bit_or, bit_xor };

}  // namespace syncopate
