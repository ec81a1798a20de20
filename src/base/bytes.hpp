#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "base/errors.hpp"

namespace syncopate {

/// A value with a fixed size on the wire: an integer, a float, a double or a bool.
template <class Value>
concept Packable = std::is_arithmetic_v<Value>;

namespace detail {

/// Swaps the bytes of a value between the machine's order and little-endian order.
template <std::size_t size>
std::array<std::byte, size> little_endian(std::array<std::byte, size> bytes) {
  if constexpr (std::endian::native == std::endian::big) {
    std::reverse(bytes.begin(), bytes.end());
  }
  return bytes;
}

}  // namespace detail

/// Packs values into a buffer that the caller owns: little-endian on every machine, no padding.
///
/// Errors: InternalError if the buffer is too small.
class ByteWriter {
 public:
  explicit ByteWriter(std::span<std::byte> into) : rest_(into) {}

  template <Packable Value>
  ByteWriter& put(Value value) {
    using Bytes = std::array<std::byte, sizeof(Value)>;
    return put_bytes(detail::little_endian(std::bit_cast<Bytes>(value)));
  }
  ByteWriter& put_bytes(std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), next(bytes.size()).begin());
    return *this;
  }
  ByteWriter& put_zeros(std::size_t count) {
    std::ranges::fill(next(count), std::byte{0});
    return *this;
  }
  std::size_t remaining() const { return rest_.size(); }

 private:
  std::span<std::byte> next(std::size_t count) {
    if (count > rest_.size()) {
      throw InternalError("packing " + std::to_string(count) + " bytes into the last " +
                          std::to_string(rest_.size()) + " of a buffer");
    }
    const std::span<std::byte> bytes = rest_.first(count);
    rest_ = rest_.subspan(count);
    return bytes;
  }

  std::span<std::byte> rest_;
};

/// Unpacks what a `ByteWriter` packed.
///
/// Errors: ProtocolError if the buffer ends before the value does.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> from) : rest_(from) {}

  /// A bool is true for every byte but zero.
  template <Packable Value>
  Value take() {
    if constexpr (std::is_same_v<Value, bool>) {
      return take<std::uint8_t>() != 0;
    } else {
      std::array<std::byte, sizeof(Value)> bytes;
      std::ranges::copy(take_bytes(bytes.size()), bytes.begin());
      return std::bit_cast<Value>(detail::little_endian(bytes));
    }
  }
  std::span<const std::byte> take_bytes(std::size_t count) {
    if (count > rest_.size()) {
      throw ProtocolError("expected " + std::to_string(count) + " more bytes, found " +
                          std::to_string(rest_.size()));
    }
    const std::span<const std::byte> bytes = rest_.first(count);
    rest_ = rest_.subspan(count);
    return bytes;
  }
  void skip(std::size_t count) { take_bytes(count); }
  std::size_t remaining() const { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace syncopate
