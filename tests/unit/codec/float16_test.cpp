// Goal:   float16 has the values of IEEE 754, and a float is converted to the nearest of them, ties
//         to even.
// Method: all 65536 bit patterns; for each two neighbours the value halfway between them and the
//         floats next to it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "codec/half_floats.hpp"

namespace syncopate {
namespace {

constexpr std::uint16_t infinite_f16 = 0x7c00;
constexpr std::uint16_t sign_of_f16 = 0x8000;

/// Returns the value by the definition, from mantissa, exponent and sign.
float defined(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return static_cast<float>((bits & sign_of_f16) != 0 ? -magnitude : magnitude);
}

TEST(Float16Test, EveryFiniteValueIsWhatItIsDefinedAsAndComesBack) {
  for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    if ((bits & infinite_f16) != infinite_f16) {
      ASSERT_EQ(from_f16(bits), defined(bits)) << pattern;
      ASSERT_EQ(to_f16(from_f16(bits)), bits) << pattern;
    }
  }
}

TEST(Float16Test, RoundsToTheNearestAndTiesToEven) {
  constexpr float up = std::numeric_limits<float>::infinity();
  for (std::uint16_t low = 0; low < infinite_f16 - 1; ++low) {
    const auto high = static_cast<std::uint16_t>(low + 1);
    const float middle = (defined(low) + defined(high)) / 2;
    ASSERT_EQ(to_f16(middle), low % 2 == 0 ? low : high) << low;
    ASSERT_EQ(to_f16(std::nextafter(middle, 0.0F)), low) << low;
    ASSERT_EQ(to_f16(std::nextafter(middle, up)), high) << low;
    ASSERT_EQ(to_f16(-middle), (low % 2 == 0 ? low : high) | sign_of_f16) << low;
  }
}

TEST(Float16Test, WhatIsTooLargeBecomesInfinite) {
  EXPECT_EQ(to_f16(65504), infinite_f16 - 1);
  EXPECT_EQ(to_f16(65519.9F), infinite_f16 - 1);
  EXPECT_EQ(to_f16(65520), infinite_f16);
  EXPECT_EQ(to_f16(-1e30F), infinite_f16 | sign_of_f16);
  EXPECT_EQ(to_f16(std::numeric_limits<float>::infinity()), infinite_f16);
  EXPECT_TRUE(std::isinf(from_f16(infinite_f16)));
  EXPECT_TRUE(std::isnan(from_f16(to_f16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_EQ(to_f16(1e-30F), 0);
}

}  // namespace
}  // namespace syncopate
