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

/// Values that can be summed: of float32, float64, int32, int64 or bfloat16. A `std::vector` of
/// these is one.
using Summable = std::variant<std::span<float>, std::span<double>, std::span<std::int32_t>,
                              std::span<std::int64_t>, std::span<Bfloat16>>;

}  // namespace syncopate
