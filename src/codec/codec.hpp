#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "codec/compression.hpp"

namespace syncopate {

/// Makes fewer bytes of float32 values, and values of them again.
///
/// Values are encoded in blocks, each by itself: so a block stays in the cache between its passes, and parts of a
/// vector that end with a block may be encoded apart. How many bytes a block takes follows from its length alone, so
/// whoever receives one knows how long it will be.
///
/// Invariant: decoding gives the same bits on every CPU.
///
/// What is not finite is not lost: NaN, or all of the group of values that has it as NaN, is what it decodes to. A
/// finite value decodes to a finite one.
///
/// Thread: one at a time.
class Codec {
 public:
  static constexpr std::size_t block_values = 65536;

  virtual ~Codec() = default;

  virtual Compression::Kind kind() const = 0;

  /// Bytes of a block of so many values, of `block_values` at most.
  virtual std::size_t block_bytes(std::size_t values) const = 0;
  /// `into` is `block_bytes` long, and lies at a multiple of 4.
  virtual void encode(std::span<const float> block, std::span<std::byte> into) = 0;
  /// `from` likewise. Errors: ProtocolError, for bytes that `encode` does not make; `block` is then unspecified.
  virtual void decode(std::span<const std::byte> from, std::span<float> block) const = 0;
};

/// Errors: InternalError, for `none`.
std::unique_ptr<Codec> make_codec(const Compression& compression);

}  // namespace syncopate
