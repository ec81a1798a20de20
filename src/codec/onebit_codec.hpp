#pragma once

#include "codec/codec.hpp"

namespace syncopate {

/// 1-bit quantisation (Seide et al. 2014): of every group of 256 values travel the signs, the mean of those
/// from 0 up and the mean of those below 0, which is what each becomes. So the mean of a group is kept.
///
/// Bytes: of a block, the two means of its groups, float32 each, then a bit a value, set from 0 up, in words of 32.
/// Error: ‖x − decoded‖ ≤ ‖x‖ in each group, since a mean is the best that one number can do.
///        Groups whose values are too large to be added count as not finite.
class OnebitCodec final : public Codec {
 public:
  static constexpr std::size_t group_values = 256;

  Compression::Kind kind() const override { return Compression::Kind::onebit; }
  std::size_t block_bytes(std::size_t values) const override;
  void encode(std::span<const float> block, std::span<std::byte> into) override;
  /// Refuses means on the wrong side of 0, and infinite ones. NaN are those of a group that was not finite.
  void decode(std::span<const std::byte> from, std::span<float> block) const override;
};

}  // namespace syncopate
