#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/errors.hpp"

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

enum class ValueType : std::uint8_t {
  float32,
  float64,
  int32,
  int64,
  bfloat16,
  float16,
  int8,
  uint8
};

/// "float32"
std::string_view name_of(ValueType type);
std::size_t bytes_of(ValueType type);

/// The type of values that are a `Value` in C++.
template <class Value>
inline constexpr ValueType type_of = ValueType::float32;
template <>
inline constexpr ValueType type_of<double> = ValueType::float64;
template <>
inline constexpr ValueType type_of<std::int32_t> = ValueType::int32;
template <>
inline constexpr ValueType type_of<std::int64_t> = ValueType::int64;
template <>
inline constexpr ValueType type_of<Bfloat16> = ValueType::bfloat16;
template <>
inline constexpr ValueType type_of<Float16> = ValueType::float16;
template <>
inline constexpr ValueType type_of<std::int8_t> = ValueType::int8;
template <>
inline constexpr ValueType type_of<std::uint8_t> = ValueType::uint8;

template <class Value>
concept OfValueType = std::same_as<Value, float> || type_of<Value>
!= ValueType::float32;

/// The memory in which values are: the host's, or that of an accelerator with its number.
struct DeviceId {
  enum class Kind : std::uint8_t { host, accelerator };

  Kind kind = Kind::host;
  std::uint16_t number = 0;

  friend bool operator==(const DeviceId&, const DeviceId&) = default;
};

/// Values of one type in contiguous memory of one device, which belongs to another. Kernels, codecs
/// and messages take those in the host's memory; a reducer says which others it takes.
class Values {
 public:
  Values() = default;
  /// `data`: `count` values of this type, aligned for it. Null only for no values.
  Values(void* data, ValueType type, std::size_t count, DeviceId device = {})
      : data_(static_cast<std::byte*>(data)), count_(count), type_(type), device_(device) {}

  // Values in the host's memory.
  // NOLINTBEGIN(google-explicit-constructor): a function that takes any values takes these
  template <OfValueType Value>
  Values(std::span<Value> values) : Values(values.data(), type_of<Value>, values.size()) {}
  template <OfValueType Value>
  Values(std::vector<Value>& values) : Values(std::span(values)) {}
  // NOLINTEND(google-explicit-constructor)

  ValueType type() const { return type_; }
  const DeviceId& device() const { return device_; }
  void* data() const { return data_; }
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  std::size_t size_bytes() const { return count_ * bytes_of(type_); }

  /// True for float32 in the host's memory, which every reducer takes.
  bool are_host_floats() const {
    return type_ == ValueType::float32 && device_.kind == DeviceId::Kind::host;
  }

  /// Errors: InternalError unless they are of this type, in the host's memory.
  template <OfValueType Value>
  std::span<Value> as() const {
    expect_host(type_of<Value>);
    return {reinterpret_cast<Value*>(data_), count_};
  }
  std::span<float> floats() const { return as<float>(); }
  /// Errors: InternalError unless they are in the host's memory.
  std::span<std::byte> bytes() const {
    expect_host(type_);
    return {data_, size_bytes()};
  }

  Values subspan(std::size_t begin, std::size_t count) const;

 private:
  void expect_host(ValueType type) const;

  std::byte* data_ = nullptr;
  std::size_t count_ = 0;
  ValueType type_ = ValueType::float32;
  DeviceId device_{};
};

/// Calls `body` with the span of the values, which are in the host's memory.
template <class Body>
decltype(auto) with_typed(const Values& values, const Body& body) {
  switch (values.type()) {
    case ValueType::float32: return body(values.as<float>());
    case ValueType::float64: return body(values.as<double>());
    case ValueType::int32: return body(values.as<std::int32_t>());
    case ValueType::int64: return body(values.as<std::int64_t>());
    case ValueType::bfloat16: return body(values.as<Bfloat16>());
    case ValueType::float16: return body(values.as<Float16>());
    case ValueType::int8: return body(values.as<std::int8_t>());
    case ValueType::uint8: return body(values.as<std::uint8_t>());
  }
  throw InternalError("values of no type");
}

}  // namespace syncopate
