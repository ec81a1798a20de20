#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/topk_codec.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/errors.hpp"
#include "codec/codec.hpp"
#include "codec/half_floats.hpp"
#include "codec/momentum_correction.hpp"
#include "kernels/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::HWY_NAMESPACE {

/// Writes the indices of all values whose bits without the sign are `least` or more, and returns
/// their number. `indices` has room for the values and one vector more.
size_t indices_from(const float* from, size_t count, int32_t least, uint32_t* indices) {
  const hn::ScalableTag<uint32_t> lanes;
  const hn::RebindToSigned<decltype(lanes)> whole;
  const hn::RebindToFloat<decltype(lanes)> floats;
  const size_t width = hn::Lanes(lanes);
  const auto bound = hn::Set(whole, least - 1);
  size_t found = 0;
  size_t i = 0;
  for (; i + width <= count; i += width) {
    const auto magnitude = hn::BitCast(whole, hn::Abs(hn::LoadU(floats, from + i)));
    const auto is_great = hn::Gt(magnitude, bound);
    if (!hn::AllFalse(whole, is_great)) {
      const auto at = hn::Iota(lanes, static_cast<uint32_t>(i));
      found += hn::CompressStore(at, hn::RebindMask(lanes, is_great), lanes, indices + found);
    }
  }
  for (; i < count; ++i) {
    int32_t bits;
    std::memcpy(&bits, from + i, sizeof(bits));
    indices[found] = static_cast<uint32_t>(i);
    found += (bits & 0x7fffffff) >= least ? 1 : 0;
  }
  return found;
}

}  // namespace syncopate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate {

HWY_EXPORT(indices_from);

const CodecSpec& topk_codec();

namespace {

/// One in `stride` values is sampled to guess which are the greatest; odd, since values come in
/// rows of even lengths.
constexpr std::size_t stride = 31;
/// The widest vector of any CPU, in values.
constexpr std::size_t widest = 64;

std::uint32_t magnitude(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
}

/// The magnitude that `rank` of `magnitudes` reach.
std::uint32_t greatest_but(std::vector<std::uint32_t>& magnitudes, std::size_t rank) {
  const auto place = magnitudes.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(magnitudes.begin(), place, magnitudes.end(), std::greater<>());
  return *place;
}

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
  std::size_t collect(std::span<const float> block, std::uint32_t least);
  std::uint32_t usual_least(std::span<const float> block, std::size_t wanted);

  double ratio_;
  std::vector<std::uint32_t> indices_;     ///< indices of the values that may be among the greatest
  std::vector<std::uint32_t> magnitudes_;  ///< to be partially sorted
};

std::size_t TopkCodec::kept(std::size_t values) const {
  return static_cast<std::size_t>(std::ceil(ratio_ * static_cast<double>(values)));
}

/// Guesses a magnitude that `wanted` values reach, and few more. It may be too large, so that fewer
/// reach it.
std::uint32_t TopkCodec::usual_least(std::span<const float> block, std::size_t wanted) {
  magnitudes_.clear();
  for (std::size_t i = 0; i < block.size(); i += stride) {
    magnitudes_.push_back(magnitude(block[i]));
  }
  // Three standard deviations above the expected number in the sample.
  const double share = static_cast<double>(wanted) / static_cast<double>(stride);
  const auto rank = static_cast<std::size_t>(share + 3 * std::sqrt(share)) + 2;
  return rank < magnitudes_.size() ? greatest_but(magnitudes_, rank) : 0;
}

std::size_t TopkCodec::collect(std::span<const float> block, std::uint32_t least) {
  indices_.resize(block.size() + widest);
  return HWY_DYNAMIC_DISPATCH(indices_from)(block.data(), block.size(),
                                            static_cast<std::int32_t>(least), indices_.data());
}

void TopkCodec::encode(std::span<const float> block, std::span<std::byte> into) {
  const std::size_t wanted = kept(block.size());
  std::size_t found = collect(block, usual_least(block, wanted));
  if (found < wanted) {
    found = collect(block, 0);
  }
  const std::span<const std::uint32_t> candidates(indices_.data(), found);
  magnitudes_.clear();
  for (const std::uint32_t index : candidates) {
    magnitudes_.push_back(magnitude(block[index]));
  }
  const std::uint32_t least = greatest_but(magnitudes_, wanted);
  const auto greater = std::count_if(magnitudes_.begin(), magnitudes_.end(),
                                     [&](auto each) { return each > least; });
  std::size_t equals = wanted - static_cast<std::size_t>(greater);
  auto* const indices = reinterpret_cast<std::uint16_t*>(into.data());
  std::size_t taken = 0;
  for (const std::uint32_t index : candidates) {
    const std::uint32_t size = magnitude(block[index]);
    if (size > least || (size == least && equals > 0)) {
      equals -= size == least ? 1 : 0;
      indices[taken] = static_cast<std::uint16_t>(index);
      indices[wanted + taken] = to_bf16(block[index]);
      ++taken;
    }
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
#endif  // HWY_ONCE
