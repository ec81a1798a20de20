#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/int8_codec.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <span>

#include "base/errors.hpp"
#include "codec/codec.hpp"
#include "kernels/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::HWY_NAMESPACE {

/// The greatest of the bits of |x|.
int32_t greatest_magnitude(const float* from, size_t count) {
  const hn::ScalableTag<int32_t> lanes;
  const hn::CappedTag<int32_t, 1> single;
  const size_t width = hn::Lanes(lanes);
  auto greatest = hn::Zero(lanes);
  size_t i = 0;
  for (; i + width <= count; i += width) greatest = greater_magnitude(lanes, greatest, from + i);
  auto rest = hn::Zero(single);
  for (; i < count; ++i) rest = greater_magnitude(single, rest, from + i);
  return HWY_MAX(hn::GetLane(hn::MaxOfLanes(lanes, greatest)), hn::GetLane(rest));
}

void quantise(const float* from, float factor, int8_t* into, size_t count) {
  for_lanes(count, [=](auto tag, size_t i) HWY_ATTR {
    const hn::Rebind<int8_t, decltype(tag)> bytes;
    const auto scaled = hn::Mul(hn::LoadU(tag, from + i), hn::Set(tag, factor));
    hn::StoreU(hn::DemoteTo(bytes, hn::NearestInt(scaled)), bytes, into + i);
  });
}

void restore(const int8_t* from, float scale, float* into, size_t count) {
  for_lanes(count, [=](auto tag, size_t i) HWY_ATTR {
    const hn::Rebind<int8_t, decltype(tag)> bytes;
    const hn::RebindToSigned<decltype(tag)> whole;
    const auto numbers = hn::ConvertTo(tag, hn::PromoteTo(whole, hn::LoadU(bytes, from + i)));
    hn::StoreU(hn::Mul(numbers, hn::Set(tag, scale)), tag, into + i);
  });
}

constexpr size_t group = 256;
constexpr int32_t infinity = 0x7f800000;
/// Below this 127 / m is infinite.
constexpr float least = 1e-36F;

/// Returns the scale.
float encode_group(const float* from, int8_t* into, size_t count) {
  const int32_t bits = greatest_magnitude(from, count);
  if (bits >= infinity) {
    std::fill_n(into, count, int8_t{0});
    return std::numeric_limits<float>::quiet_NaN();
  }
  const auto greatest = std::bit_cast<float>(bits);
  if (greatest < least) {
    std::fill_n(into, count, int8_t{0});
    return 0;
  }
  quantise(from, 127 / greatest, into, count);
  return greatest / 127;
}

void encode_int8(const float* from, float* scales, int8_t* into, size_t count) {
  for (size_t at = 0; at < count; at += group) {
    scales[at / group] = encode_group(from + at, into + at, HWY_MIN(group, count - at));
  }
}

void decode_int8(const float* scales, const int8_t* from, float* into, size_t count) {
  for (size_t at = 0; at < count; at += group) {
    const float scale = scales[at / group];
    const size_t length = HWY_MIN(group, count - at);
    if (std::isnan(scale)) {
      std::fill_n(into + at, length, std::numeric_limits<float>::quiet_NaN());
    } else {
      restore(from + at, scale, into + at, length);
    }
  }
}

}  // namespace syncopate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate {

HWY_EXPORT(encode_int8);
HWY_EXPORT(decode_int8);

const CodecSpec& int8_codec();

namespace {

/// Linear quantisation (as QSGD, Alistarh et al. 2017, without its random rounding): of every group
/// of 256 values, with m = max |x|, each is sent as round(127 x / m), together with m / 127.
///
/// Bytes: of a block, the scales of its groups, float32 each, then one byte per value.
/// Error: |x − decoded| ≤ m / 254, plus a rounding error of float32; groups with m < 10^−36 become
///        zeros.
class Int8Codec final : public Codec {
 public:
  static constexpr std::size_t group_values = 256;

  const CodecSpec& spec() const override { return int8_codec(); }
  std::size_t block_bytes(std::size_t values) const override;
  void encode(std::span<const float> block, std::span<std::byte> into) override;
  /// Refuses scales below 0 and infinite ones. NaN is the scale of a group that was not finite.
  void decode(std::span<const std::byte> from, std::span<float> block) const override;
};

constexpr std::size_t groups_in(std::size_t values) {
  return (values + Int8Codec::group_values - 1) / Int8Codec::group_values;
}

void check_scales(std::span<const float> scales) {
  const bool good = std::all_of(scales.begin(), scales.end(), [](float scale) {
    return std::isnan(scale) || (scale >= 0 && std::isfinite(scale));
  });
  if (!good) {
    throw ProtocolError("values compressed by int8 have a scale that is below 0 or infinite");
  }
}

std::size_t Int8Codec::block_bytes(std::size_t values) const {
  return groups_in(values) * sizeof(float) + values;
}

void Int8Codec::encode(std::span<const float> block, std::span<std::byte> into) {
  auto* const scales = reinterpret_cast<float*>(into.data());
  auto* const numbers = reinterpret_cast<std::int8_t*>(scales + groups_in(block.size()));
  HWY_DYNAMIC_DISPATCH(encode_int8)(block.data(), scales, numbers, block.size());
}

void Int8Codec::decode(std::span<const std::byte> from, std::span<float> block) const {
  const auto* const scales = reinterpret_cast<const float*>(from.data());
  const std::size_t groups = groups_in(block.size());
  check_scales({scales, groups});
  const auto* const numbers = reinterpret_cast<const std::int8_t*>(scales + groups);
  HWY_DYNAMIC_DISPATCH(decode_int8)(scales, numbers, block.data(), block.size());
}

}  // namespace

const CodecSpec& int8_codec() {
  static const CodecSpec spec{
      .name = "int8", .number = 3, .make = [](double) -> std::unique_ptr<Codec> {
        return std::make_unique<Int8Codec>();
      }};
  return spec;
}

}  // namespace syncopate
#endif  // HWY_ONCE
