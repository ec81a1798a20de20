#pragma once

#include <cstdint>
#include <vector>

#include "codec/codec.hpp"

namespace syncopate {

/// The greatest values alone (Aji & Heafield 2017; Lin et al. 2018): of every block of n the k = ⌈ratio · n⌉ of greatest
/// magnitude travel, the first ones among equals, as bfloat16; the others become 0. NaN counts as the greatest.
///
/// Bytes: of a block, the places of its k values, ascending, in 16 bits each, then the values.
/// Error: ‖x − decoded‖² ≤ (1 − k / n) ‖x‖² + 2^−16 ‖x‖².
class TopkCodec final : public Codec {
 public:
  explicit TopkCodec(double ratio) : ratio_(ratio) {}

  Compression::Kind kind() const override { return Compression::Kind::topk; }
  std::size_t block_bytes(std::size_t values) const override {
    return 2 * sizeof(std::uint16_t) * kept(values);
  }
  void encode(std::span<const float> block, std::span<std::byte> into) override;
  /// Refuses places that do not ascend or are not in the block.
  void decode(std::span<const std::byte> from, std::span<float> block) const override;

 private:
  std::size_t kept(std::size_t values) const;
  std::size_t collect(std::span<const float> block, std::uint32_t least);
  std::uint32_t usual_least(std::span<const float> block, std::size_t wanted);

  double ratio_;
  std::vector<std::uint32_t> places_;      ///< of the values that may be among the greatest
  std::vector<std::uint32_t> magnitudes_;  ///< to be sorted in part
};

}  // namespace syncopate
