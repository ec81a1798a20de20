#pragma once

#include "codec/codec.hpp"

namespace syncopate {

/// Linear quantisation (as QSGD, Alistarh et al. 2017, without its dice): of every group of 256 values,
/// m = max |x|, each travels as round(127 x / m), and m / 127 beside them.
///
/// Bytes: of a block, the scales of its groups, float32 each, then a byte a value.
/// Error: |x − decoded| ≤ m / 254, and a rounding error of float32; groups with m < 10^−36 become 0.
class Int8Codec final : public Codec {
 public:
  static constexpr std::size_t group_values = 256;

  Compression::Kind kind() const override { return Compression::Kind::int8; }
  std::size_t block_bytes(std::size_t values) const override;
  void encode(std::span<const float> block, std::span<std::byte> into) override;
  /// Refuses scales below 0 and infinite ones. NaN is the scale of a group that was not finite.
  void decode(std::span<const std::byte> from, std::span<float> block) const override;
};

}  // namespace syncopate
