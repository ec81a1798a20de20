#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/onebit_codec.cpp"
#include <hwy/foreach_target.h>

#include <cmath>
#include <limits>
#include <memory>
#include <span>

#include "base/errors.hpp"
#include "codec/codec.hpp"
#include "codec/momentum_correction.hpp"
#include "kernels/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::HWY_NAMESPACE {

/// Statistics of a group.
struct Signs {
  float sum = 0;  ///< of the values from 0 up
  float sum_below = 0;
  size_t count = 0;  ///< of the values from 0 up
};

/// Signs of 32 values as the bits of a word, and their sums, lane by lane.
template <class Tag>
HWY_INLINE uint32_t take_word(Tag tag, const float* from, hn::Vec<Tag>& sum,
                              hn::Vec<Tag>& sum_below) {
  const size_t width = hn::Lanes(tag);
  const auto zero = hn::Zero(tag);
  uint32_t word = 0;
  for (size_t j = 0; j < 32; j += width) {
    const auto values = hn::LoadU(tag, from + j);
    const auto is_below = hn::Lt(values, zero);
    sum = hn::Add(sum, hn::IfThenZeroElse(is_below, values));
    sum_below = hn::Add(sum_below, hn::IfThenElseZero(is_below, values));
    alignas(8) uint8_t bits[8] = {};
    hn::StoreMaskBits(tag, is_below, bits);
    word |= (uint32_t{bits[0]} | uint32_t{bits[1]} << 8) << j;
  }
  return ~word;
}

/// The rest of a group, which is less than a word.
void take_rest(const float* from, size_t count, uint32_t* word, Signs* signs) {
  *word = 0;
  for (size_t i = 0; i < count; ++i) {
    const bool is_below = from[i] < 0;
    (is_below ? signs->sum_below : signs->sum) += from[i];
    signs->count += is_below ? 0 : 1;
    *word |= uint32_t{is_below ? 0U : 1U} << i;
  }
}

Signs take_signs(const float* from, uint32_t* into, size_t count) {
  const hn::CappedTag<float, 16> lanes;
  auto sum = hn::Zero(lanes);
  auto sum_below = hn::Zero(lanes);
  Signs signs;
  size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const uint32_t word = take_word(lanes, from + i, sum, sum_below);
    signs.count += hwy::PopCount(word);
    into[i / 32] = word;
  }
  signs.sum = hn::GetLane(hn::SumOfLanes(lanes, sum));
  signs.sum_below = hn::GetLane(hn::SumOfLanes(lanes, sum_below));
  if (i < count) {
    take_rest(from + i, count - i, into + i / 32, &signs);
  }
  return signs;
}

float mean(float sum, size_t count) {
  return count > 0 ? sum / static_cast<float>(count) : 0.0F;
}

constexpr size_t group = 256;

/// `means`: two per group.
void encode_onebit(const float* from, float* means, uint32_t* into, size_t count) {
  for (size_t at = 0; at < count; at += group, means += 2) {
    const size_t length = HWY_MIN(group, count - at);
    const Signs signs = take_signs(from + at, into + at / 32, length);
    means[0] = mean(signs.sum, signs.count);
    means[1] = mean(signs.sum_below, length - signs.count);
    if (!std::isfinite(means[0]) || !std::isfinite(means[1])) {
      means[0] = means[1] = std::numeric_limits<float>::quiet_NaN();
    }
  }
}

void choose(const uint32_t* from, const float* means, float* into, size_t count) {
  const hn::CappedTag<float, 16> lanes;
  const hn::RebindToUnsigned<decltype(lanes)> whole;
  const size_t width = hn::Lanes(lanes);
  const auto above = hn::Set(lanes, means[0]);
  const auto below = hn::Set(lanes, means[1]);
  size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const auto word = hn::Set(whole, from[i / 32]);
    for (size_t j = 0; j < 32; j += width) {
      const auto bit = hn::Shl(hn::Set(whole, 1), hn::Iota(whole, static_cast<uint32_t>(j)));
      const auto is_set = hn::RebindMask(lanes, hn::TestBit(word, bit));
      hn::StoreU(hn::IfThenElse(is_set, above, below), lanes, into + i + j);
    }
  }
  for (; i < count; ++i) {
    into[i] = means[(from[i / 32] >> i % 32 & 1) != 0 ? 0 : 1];
  }
}

void decode_onebit(const float* means, const uint32_t* from, float* into, size_t count) {
  for (size_t at = 0; at < count; at += group, means += 2) {
    choose(from + at / 32, means, into + at, HWY_MIN(group, count - at));
  }
}

}  // namespace syncopate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate {

HWY_EXPORT(encode_onebit);
HWY_EXPORT(decode_onebit);

const CodecSpec& onebit_codec();

namespace {

/// 1-bit quantisation (Seide et al. 2014): for every group of 256 values it sends the signs, the
/// mean of the values from 0 up and the mean of those below 0. Each value decodes to the mean of
/// its side, so the mean of the group does not change.
///
/// Bytes: of a block, the two means of its groups, float32 each, then one bit per value, set for
///        values from 0 up, in words of 32.
/// Error: ‖x − decoded‖ ≤ ‖x‖ in each group, since the mean is the best single number.
///        Groups whose values are too large to be added count as not finite.
class OnebitCodec final : public Codec {
 public:
  static constexpr std::size_t group_values = 256;

  const CodecSpec& spec() const override { return onebit_codec(); }
  std::size_t block_bytes(std::size_t values) const override;
  void encode(std::span<const float> block, std::span<std::byte> into) override;
  /// Refuses means on the wrong side of 0, and infinite ones. The means of a group that was not
  /// finite are NaN.
  void decode(std::span<const std::byte> from, std::span<float> block) const override;
};

constexpr std::size_t means_in(std::size_t values) {
  return 2 * ((values + OnebitCodec::group_values - 1) / OnebitCodec::group_values);
}

void check_means(std::span<const float> means) {
  for (std::size_t i = 0; i < means.size(); i += 2) {
    const bool is_lost = std::isnan(means[i]) && std::isnan(means[i + 1]);
    const bool is_good = means[i] >= 0 && std::isfinite(means[i]) && means[i + 1] <= 0 &&
                         std::isfinite(means[i + 1]);
    if (!is_lost && !is_good) {
      throw ProtocolError(
          "values compressed by onebit have a mean that is infinite, or not on its side of 0");
    }
  }
}

std::size_t OnebitCodec::block_bytes(std::size_t values) const {
  return means_in(values) * sizeof(float) + (values + 31) / 32 * sizeof(std::uint32_t);
}

void OnebitCodec::encode(std::span<const float> block, std::span<std::byte> into) {
  auto* const means = reinterpret_cast<float*>(into.data());
  auto* const words = reinterpret_cast<std::uint32_t*>(means + means_in(block.size()));
  HWY_DYNAMIC_DISPATCH(encode_onebit)(block.data(), means, words, block.size());
}

void OnebitCodec::decode(std::span<const std::byte> from, std::span<float> block) const {
  const auto* const means = reinterpret_cast<const float*>(from.data());
  check_means({means, means_in(block.size())});
  const auto* const words = reinterpret_cast<const std::uint32_t*>(means + means_in(block.size()));
  HWY_DYNAMIC_DISPATCH(decode_onebit)(means, words, block.data(), block.size());
}

}  // namespace

const CodecSpec& onebit_codec() {
  static const CodecSpec spec{
      .name = "onebit",
      .number = 4,
      .make = [](double) -> std::unique_ptr<Codec> { return std::make_unique<OnebitCodec>(); },
      .gradient_ahead = [](double) { return usual_gradient_ahead; }};
  return spec;
}

}  // namespace syncopate
#endif  // HWY_ONCE
