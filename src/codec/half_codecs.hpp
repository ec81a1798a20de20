#pragma once

#include "codec/codec.hpp"

namespace syncopate {

/// Floats of 16 bits: of each value the nearest, ties to even. A finite value stays finite: what would round to infinity
/// becomes the greatest finite one instead.
template <Compression::Kind which>
class HalfCodec final : public Codec {
 public:
  Compression::Kind kind() const override { return which; }
  std::size_t block_bytes(std::size_t values) const override { return 2 * values; }
  void encode(std::span<const float> block, std::span<std::byte> into) override;
  void decode(std::span<const std::byte> from, std::span<float> block) const override;
};

/// bfloat16: the upper half of a float32.
/// Error: |x − decoded| ≤ 2^−8 |x| for normal x, but for the very greatest.
using Bf16Codec = HalfCodec<Compression::Kind::bf16>;

/// binary16 of IEEE 754, whose greatest is 65504.
/// Error: |x − decoded| ≤ max(2^−11 |x|, 2^−25) for |x| ≤ 65504.
using Fp16Codec = HalfCodec<Compression::Kind::fp16>;

/// One value as a bfloat16, by the same rule.
std::uint16_t to_bf16(float value);
float from_bf16(std::uint16_t bits);

}  // namespace syncopate
