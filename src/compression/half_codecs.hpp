#pragma once

#include "compression/codec.hpp"

namespace syncopate {

/// bfloat16: the upper half of a float32, rounded to nearest, ties to even. A value that would round to infinity
/// becomes the greatest finite one instead.
/// Error: |x − decoded| ≤ 2^−8 |x| for normal x, but for the very greatest.
class Bf16Codec final : public Codec {
 public:
  Compression::Kind kind() const override { return Compression::Kind::bf16; }
  std::size_t block_bytes(std::size_t values) const override { return 2 * values; }
  void encode(std::span<const float> block, std::span<std::byte> into) override;
  void decode(std::span<const std::byte> from, std::span<float> block) const override;
};

/// binary16 of IEEE 754, rounded to nearest, ties to even; finite values beyond ±65504 become that.
/// Error: |x − decoded| ≤ max(2^−11 |x|, 2^−25) for |x| ≤ 65504.
class Fp16Codec final : public Codec {
 public:
  Compression::Kind kind() const override { return Compression::Kind::fp16; }
  std::size_t block_bytes(std::size_t values) const override { return 2 * values; }
  void encode(std::span<const float> block, std::span<std::byte> into) override;
  void decode(std::span<const std::byte> from, std::span<float> block) const override;
};

/// One value as a bfloat16, by the same rule.
std::uint16_t to_bf16(float value);
float from_bf16(std::uint16_t bits);

}  // namespace syncopate
