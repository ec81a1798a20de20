#pragma once

#include <syncopate.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <type_traits>

namespace syncopate {
inline namespace v0 {

/// The bits of a bfloat16.
struct Bfloat16 {
  std::uint16_t bits = 0;

  friend bool operator==(Bfloat16 a, Bfloat16 b) { return a.bits == b.bits; }
  friend bool operator!=(Bfloat16 a, Bfloat16 b) { return a.bits != b.bits; }
};

/// The bits of an IEEE 754 float16.
struct Float16 {
  std::uint16_t bits = 0;

  friend bool operator==(Float16 a, Float16 b) { return a.bits == b.bits; }
  friend bool operator!=(Float16 a, Float16 b) { return a.bits != b.bits; }
};

namespace detail {

/// Returns the type of the C interface for values of type `Value`.
template <class Value>
constexpr syncopate_type type_of() {
  if constexpr (std::is_same_v<Value, float>) {
    return SYNCOPATE_FLOAT32;
  } else if constexpr (std::is_same_v<Value, double>) {
    return SYNCOPATE_FLOAT64;
  } else if constexpr (std::is_same_v<Value, Bfloat16>) {
    return SYNCOPATE_BFLOAT16;
  } else if constexpr (std::is_same_v<Value, Float16>) {
    return SYNCOPATE_FLOAT16;
  } else if constexpr (std::is_same_v<Value, std::uint8_t>) {
    return SYNCOPATE_UINT8;
  } else if constexpr (std::is_same_v<Value, std::int8_t>) {
    return SYNCOPATE_INT8;
  } else {
    static_assert(std::is_integral_v<Value> && std::is_signed_v<Value> &&
                      (sizeof(Value) == 4 || sizeof(Value) == 8),
                  "values of float, double, Bfloat16, Float16, uint8_t, int8_t, int32_t or int64_t "
                  "can be reduced");
    return sizeof(Value) == 4 ? SYNCOPATE_INT32 : SYNCOPATE_INT64;
  }
}

/// Returns a name such as "float32" or "int64"; empty for values that are not numbers.
template <class Value>
std::string type_name() {
  if constexpr (std::is_same_v<Value, Bfloat16>) {
    return "bfloat16";
  } else if constexpr (std::is_same_v<Value, Float16>) {
    return "float16";
  } else if constexpr (std::is_arithmetic_v<Value>) {
    const char* const kind = std::is_floating_point_v<Value> ? "float"
                             : std::is_signed_v<Value>       ? "int"
                                                             : "uint";
    return kind + std::to_string(8 * sizeof(Value));
  } else {
    return "";
  }
}

/// Compares exactly; for values that are passed through without computation.
inline bool same(double a, double b) {
  return std::equal_to<double>()(a, b);
}

/// The type of the values in a container.
template <class Values>
using ValueOf = std::remove_reference_t<decltype(*std::data(std::declval<Values&>()))>;

template <class Values>
std::size_t bytes_of(const Values& values) {
  return std::size(values) * sizeof(ValueOf<const Values>);
}

}  // namespace detail
}  // namespace v0
}  // namespace syncopate
