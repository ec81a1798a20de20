// Compiled once for each instruction set that Highway knows on this architecture; the best one that
// the CPU has is chosen at the first call.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/int8_codec.cpp"
#include "codec/int8_codec.hpp"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/errors.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// The greatest of the bits of |x|: those of NaN are above those of infinity, and they above all others.
int32_t greatest_magnitude(const float* from, size_t count) {
  const hn::ScalableTag<int32_t> lanes;
  const hn::RebindToFloat<decltype(lanes)> floats;
  const size_t width = hn::Lanes(lanes);
  auto greatest = hn::Zero(lanes);
  size_t i = 0;
  for (; i + width <= count; i += width) {
    greatest = hn::Max(greatest, hn::BitCast(lanes, hn::Abs(hn::LoadU(floats, from + i))));
  }
  int32_t result = hn::GetLane(hn::MaxOfLanes(lanes, greatest));
  const hn::CappedTag<int32_t, 1> one;
  const hn::RebindToFloat<decltype(one)> one_float;
  for (; i < count; ++i) {
    const auto bits = hn::BitCast(one, hn::Abs(hn::LoadU(one_float, from + i)));
    result = HWY_MAX(result, hn::GetLane(bits));
  }
  return result;
}

template <class Tag>
HWY_INLINE void quantise_lanes(Tag tag, const float* from, float factor, int8_t* into) {
  const hn::Rebind<int8_t, Tag> bytes;
  const auto scaled = hn::Mul(hn::LoadU(tag, from), hn::Set(tag, factor));
  hn::StoreU(hn::DemoteTo(bytes, hn::NearestInt(scaled)), bytes, into);
}

void quantise(const float* from, float factor, int8_t* into, size_t count) {
  const hn::ScalableTag<float> lanes;
  const size_t width = hn::Lanes(lanes);
  size_t i = 0;
  for (; i + width <= count; i += width) {
    quantise_lanes(lanes, from + i, factor, into + i);
  }
  for (; i < count; ++i) {
    quantise_lanes(hn::CappedTag<float, 1>(), from + i, factor, into + i);
  }
}

template <class Tag>
HWY_INLINE void restore_lanes(Tag tag, const int8_t* from, float scale, float* into) {
  const hn::Rebind<int8_t, Tag> bytes;
  const hn::RebindToSigned<Tag> whole;
  const auto numbers = hn::ConvertTo(tag, hn::PromoteTo(whole, hn::LoadU(bytes, from)));
  hn::StoreU(hn::Mul(numbers, hn::Set(tag, scale)), tag, into);
}

void restore(const int8_t* from, float scale, float* into, size_t count) {
  const hn::ScalableTag<float> lanes;
  const size_t width = hn::Lanes(lanes);
  size_t i = 0;
  for (; i + width <= count; i += width) {
    restore_lanes(lanes, from + i, scale, into + i);
  }
  for (; i < count; ++i) {
    restore_lanes(hn::CappedTag<float, 1>(), from + i, scale, into + i);
  }
}

constexpr size_t group = 256;
constexpr int32_t infinity = 0x7f800000;
/// Below this 127 / m is no finite number.
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

namespace {

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

}  // namespace

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

}  // namespace syncopate
#endif  // HWY_ONCE
