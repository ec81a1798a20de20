// Compiled once for each instruction set that Highway knows on this architecture; the best one that
// the CPU has is chosen at the first call.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/half_codecs.cpp"
#include "codec/half_codecs.hpp"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>

HWY_BEFORE_NAMESPACE();
namespace syncopate::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Halves are made by whole-number operations, since those of CPUs differ in how they round and what they
// make of NaN.

constexpr int32_t infinity = 0x7f800000;

template <class Tag>
using Bits = hn::RebindToSigned<Tag>;
template <class Tag>
using Halves = hn::Rebind<uint16_t, Tag>;

/// The lower 16 bits of each lane; the others are 0.
template <class Tag>
HWY_INLINE void store_halves(Tag tag, hn::Vec<Bits<Tag>> halves, uint16_t* into) {
  const Halves<Tag> narrow;
  (void)tag;
  hn::StoreU(hn::DemoteTo(narrow, halves), narrow, into);
}

template <class Tag>
HWY_INLINE hn::Vec<Bits<Tag>> load_halves(Tag /*tag*/, const uint16_t* from) {
  const hn::RebindToUnsigned<Tag> wide;
  return hn::BitCast(Bits<Tag>(), hn::PromoteTo(wide, hn::LoadU(Halves<Tag>(), from)));
}

struct Bf16 {
  template <class Tag>
  static HWY_INLINE void encode(Tag tag, const float* from, uint16_t* into) {
    const Bits<Tag> whole;
    const auto bits = hn::BitCast(whole, hn::LoadU(tag, from));
    const auto magnitude = hn::And(bits, hn::Set(whole, 0x7fffffff));
    const auto sign = hn::Xor(bits, magnitude);
    const auto odd = hn::And(hn::ShiftRight<16>(magnitude), hn::Set(whole, 1));
    const auto rounded = hn::Add(magnitude, hn::Add(odd, hn::Set(whole, 0x7fff)));
    const auto greatest = hn::Set(whole, 0x7f7f0000);
    const auto is_nan = hn::Gt(magnitude, hn::Set(whole, infinity));
    const auto special =
        hn::IfThenElse(is_nan, hn::Set(whole, 0x7fc00000), hn::Set(whole, infinity));
    const auto is_finite = hn::Lt(magnitude, hn::Set(whole, infinity));
    const auto half = hn::IfThenElse(is_finite, hn::Min(rounded, greatest), special);
    const hn::RebindToUnsigned<Tag> logical;
    const auto shifted = hn::ShiftRight<16>(hn::BitCast(logical, hn::Or(half, sign)));
    store_halves(tag, hn::BitCast(whole, shifted), into);
  }

  template <class Tag>
  static HWY_INLINE void decode(Tag tag, const uint16_t* from, float* into) {
    hn::StoreU(hn::BitCast(tag, hn::ShiftLeft<16>(load_halves(tag, from))), tag, into);
  }
};

struct Fp16 {
  /// Of the least normal half, 2^-14, and of the greatest, 65504.
  static constexpr int32_t least_normal = (127 - 14) << 23;
  static constexpr int32_t greatest = 0x477fe000;
  /// 0.5: added to what has no normal half, it leaves the mantissa of its half in the lowest bits, rounded.
  static constexpr int32_t aligner = (127 - 1) << 23;
  static constexpr int32_t rebias = (127 - 15) << 23;

  template <class Tag>
  static HWY_INLINE void encode(Tag tag, const float* from, uint16_t* into) {
    const Bits<Tag> whole;
    const auto bits = hn::BitCast(whole, hn::LoadU(tag, from));
    const auto magnitude = hn::And(bits, hn::Set(whole, 0x7fffffff));
    const hn::RebindToUnsigned<Tag> logical;
    const auto sign =
        hn::BitCast(whole, hn::ShiftRight<16>(hn::BitCast(logical, hn::Xor(bits, magnitude))));
    const auto clamped = hn::Min(magnitude, hn::Set(whole, greatest));
    const auto odd = hn::And(hn::ShiftRight<13>(clamped), hn::Set(whole, 1));
    const auto normal = hn::ShiftRight<13>(
        hn::Add(hn::Sub(clamped, hn::Set(whole, rebias)), hn::Add(odd, hn::Set(whole, 0xfff))));
    const auto align = hn::Set(whole, aligner);
    const auto aligned = hn::Add(hn::BitCast(tag, clamped), hn::BitCast(tag, align));
    const auto subnormal = hn::Sub(hn::BitCast(whole, aligned), align);
    const auto is_small = hn::Lt(magnitude, hn::Set(whole, least_normal));
    const auto half = hn::IfThenElse(is_small, subnormal, normal);
    const auto is_nan = hn::Gt(magnitude, hn::Set(whole, infinity));
    const auto special = hn::IfThenElse(is_nan, hn::Set(whole, 0x7e00), hn::Set(whole, 0x7c00));
    const auto is_finite = hn::Lt(magnitude, hn::Set(whole, infinity));
    store_halves(tag, hn::Or(hn::IfThenElse(is_finite, half, special), sign), into);
  }

  template <class Tag>
  static HWY_INLINE void decode(Tag tag, const uint16_t* from, float* into) {
    const Bits<Tag> whole;
    const auto half = load_halves(tag, from);
    const auto magnitude = hn::And(half, hn::Set(whole, 0x7fff));
    const auto sign = hn::ShiftLeft<16>(hn::Xor(half, magnitude));
    const auto shifted = hn::ShiftLeft<13>(magnitude);
    const auto normal = hn::Add(shifted, hn::Set(whole, rebias));
    const auto base = hn::Set(whole, least_normal);
    // A subnormal half, as the mantissa of 2^-14 and taken off again, is renormalised exactly.
    const auto subnormal = hn::BitCast(
        whole, hn::Sub(hn::BitCast(tag, hn::Add(shifted, base)), hn::BitCast(tag, base)));
    const auto is_small = hn::Lt(magnitude, hn::Set(whole, 0x0400));
    const auto is_finite = hn::Lt(magnitude, hn::Set(whole, 0x7c00));
    const auto finite = hn::IfThenElse(is_small, subnormal, normal);
    const auto special = hn::Or(shifted, hn::Set(whole, infinity));
    const auto bits = hn::Or(hn::IfThenElse(is_finite, finite, special), sign);
    hn::StoreU(hn::BitCast(tag, bits), tag, into);
  }
};

template <class Half>
HWY_INLINE void encode_all(const float* from, uint16_t* into, size_t count) {
  const hn::ScalableTag<float> lanes;
  const size_t width = hn::Lanes(lanes);
  size_t i = 0;
  for (; i + width <= count; i += width) {
    Half::encode(lanes, from + i, into + i);
  }
  for (; i < count; ++i) {
    Half::encode(hn::CappedTag<float, 1>(), from + i, into + i);
  }
}

template <class Half>
HWY_INLINE void decode_all(const uint16_t* from, float* into, size_t count) {
  const hn::ScalableTag<float> lanes;
  const size_t width = hn::Lanes(lanes);
  size_t i = 0;
  for (; i + width <= count; i += width) {
    Half::decode(lanes, from + i, into + i);
  }
  for (; i < count; ++i) {
    Half::decode(hn::CappedTag<float, 1>(), from + i, into + i);
  }
}

void encode_bf16(const float* from, uint16_t* into, size_t count) {
  encode_all<Bf16>(from, into, count);
}
void decode_bf16(const uint16_t* from, float* into, size_t count) {
  decode_all<Bf16>(from, into, count);
}
void encode_fp16(const float* from, uint16_t* into, size_t count) {
  encode_all<Fp16>(from, into, count);
}
void decode_fp16(const uint16_t* from, float* into, size_t count) {
  decode_all<Fp16>(from, into, count);
}

}  // namespace syncopate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate {

HWY_EXPORT(encode_bf16);
HWY_EXPORT(decode_bf16);
HWY_EXPORT(encode_fp16);
HWY_EXPORT(decode_fp16);

namespace {

std::uint16_t* halves(std::span<std::byte> bytes) {
  return reinterpret_cast<std::uint16_t*>(bytes.data());
}

const std::uint16_t* halves(std::span<const std::byte> bytes) {
  return reinterpret_cast<const std::uint16_t*>(bytes.data());
}

}  // namespace

template <Compression::Kind which>
void HalfCodec<which>::encode(std::span<const float> block, std::span<std::byte> into) {
  if constexpr (which == Compression::Kind::bf16) {
    HWY_DYNAMIC_DISPATCH(encode_bf16)(block.data(), halves(into), block.size());
  } else {
    HWY_DYNAMIC_DISPATCH(encode_fp16)(block.data(), halves(into), block.size());
  }
}

template <Compression::Kind which>
void HalfCodec<which>::decode(std::span<const std::byte> from, std::span<float> block) const {
  if constexpr (which == Compression::Kind::bf16) {
    HWY_DYNAMIC_DISPATCH(decode_bf16)(halves(from), block.data(), block.size());
  } else {
    HWY_DYNAMIC_DISPATCH(decode_fp16)(halves(from), block.data(), block.size());
  }
}

template class HalfCodec<Compression::Kind::bf16>;
template class HalfCodec<Compression::Kind::fp16>;

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const std::uint32_t sign = bits ^ magnitude;
  constexpr std::uint32_t infinity = 0x7f800000U;
  std::uint32_t half = magnitude > infinity ? 0x7fc00000U : infinity;
  if (magnitude < infinity) {
    half = std::min(magnitude + 0x7fffU + (magnitude >> 16 & 1U), 0x7f7f0000U);
  }
  return static_cast<std::uint16_t>((half | sign) >> 16);
}

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

}  // namespace syncopate
#endif  // HWY_ONCE
