#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include "base/errors.hpp"
#include "codec/codec.hpp"
#include "codec/greatest_values.hpp"
#include "codec/half_floats.hpp"
#include "codec/momentum_correction.hpp"

namespace syncopate {

const CodecSpec& topk_codec();

namespace {

/// Sends only the greatest values (Aji & Heafield 2017; Lin et al. 2018): of every block of n
/// values the k = ⌈ratio · n⌉ of greatest magnitude, the first ones among equals, as bfloat16; the
/// others become 0. NaN counts as the greatest.
///
/// Bytes: of a block, the indices of its k values, ascending, in 16 bits each, then the values.
/// Error: ‖x − decoded‖² ≤ (1 − k / n) ‖x‖² + 2^−16 ‖x‖².
class TopkCodec final : public Codec {
 public:
  explicit TopkCodec(double ratio) : ratio_(ratio) {}

  const CodecSpec& spec() const override { return topk_codec(); }
  std::size_t block_bytes(std::size_t values) const override {
    return 2 * sizeof(std::uint16_t) * kept(values);
  }
  void encode(std::span<const float> block, std::span<std::byte> into) override;
  /// Refuses indices that do not ascend or are not in the block.
  void decode(std::span<const std::byte> from, std::span<float> block) const override;

 private:
  std::size_t kept(std::size_t values) const;

  double ratio_;
  GreatestValues greatest_;
};

std::size_t TopkCodec::kept(std::size_t values) const {
  return static_cast<std::size_t>(std::ceil(ratio_ * static_cast<double>(values)));
}

void TopkCodec::encode(std::span<const float> block, std::span<std::byte> into) {
  const std::span<const std::uint32_t> greatest = greatest_.find(block, kept(block.size()));
  auto* const indices = reinterpret_cast<std::uint16_t*>(into.data());
  auto* const values = indices + greatest.size();
  for (std::size_t i = 0; i < greatest.size(); ++i) {
    indices[i] = static_cast<std::uint16_t>(greatest[i]);
    values[i] = to_bf16(block[greatest[i]]);
  }
}

void TopkCodec::decode(std::span<const std::byte> from, std::span<float> block) const {
  const std::size_t count = kept(block.size());
  const auto* const indices = reinterpret_cast<const std::uint16_t*>(from.data());
  std::fill(block.begin(), block.end(), 0.0F);
  std::size_t least = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (indices[i] < least || indices[i] >= block.size()) {
      throw ProtocolError(
          "values compressed by topk have indices that do not ascend, or lie beyond their block");
    }
    least = indices[i] + std::size_t{1};
    block[indices[i]] = from_bf16(indices[count + i]);
  }
}

}  // namespace

const CodecSpec& topk_codec() {
  static const CodecSpec spec{
      .name = "topk",
      .number = 5,
      .help = "the greatest values, a RATIO of them in (0, 1]",
      .parameter = CodecParameter{.name = "RATIO", .most = 1},
      .make = [](double ratio) -> std::unique_ptr<Codec> {
        return std::make_unique<TopkCodec>(ratio);
      },
      .gradient_ahead = [](double ratio) { return usual_gradient_ahead * (1 - ratio); }};
  return spec;
}

}  // namespace syncopate
