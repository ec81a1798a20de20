#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/half_codecs.cpp"
#include <hwy/foreach_target.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "codec/codec.hpp"
#include "kernels/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::HWY_NAMESPACE {

// Integer operations convert to and from halves: the conversions of CPUs differ in rounding and in
// the payload of NaN.

constexpr int32_t infinity = 0x7f800000;

template <class Tag>
using Bits = hn::RebindToSigned<Tag>;
template <class Tag>
using Halves = hn::Rebind<uint16_t, Tag>;

/// Stores the lower 16 bits of each lane; the others are 0.
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
  /// The bits of the least normal half, 2^-14, and of the greatest, 65504.
  static constexpr int32_t least_normal = (127 - 14) << 23;
  static constexpr int32_t greatest = 0x477fe000;
  /// The bits of 0.5. In the sum of 0.5 and a value below `least_normal`, the lowest bits are the
  /// rounded mantissa of the value's half.
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
    // A subnormal half is renormalised exactly: its bits become the mantissa of 2^-14, which is
    // then subtracted.
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
  for_lanes(count, [=](auto tag, size_t i) HWY_ATTR { Half::encode(tag, from + i, into + i); });
}

template <class Half>
HWY_INLINE void decode_all(const uint16_t* from, float* into, size_t count) {
  for_lanes(count, [=](auto tag, size_t i) HWY_ATTR { Half::decode(tag, from + i, into + i); });
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

const CodecSpec& bf16_codec();
const CodecSpec& fp16_codec();

namespace {

std::uint16_t* halves(std::span<std::byte> bytes) {
  return reinterpret_cast<std::uint16_t*>(bytes.data());
}

const std::uint16_t* halves(std::span<const std::byte> bytes) {
  return reinterpret_cast<const std::uint16_t*>(bytes.data());
}

using Encode = void (*)(const float* from, std::uint16_t* into, std::size_t count);
using Decode = void (*)(const std::uint16_t* from, float* into, std::size_t count);

void encode_as_bf16(const float* from, std::uint16_t* into, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(encode_bf16)(from, into, count);
}
void decode_as_bf16(const std::uint16_t* from, float* into, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(decode_bf16)(from, into, count);
}
void encode_as_fp16(const float* from, std::uint16_t* into, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(encode_fp16)(from, into, count);
}
void decode_as_fp16(const std::uint16_t* from, float* into, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(decode_fp16)(from, into, count);
}

/// Floats of 16 bits: the nearest of each value, ties to even. A finite value stays finite: where
/// it would round to infinity it becomes the greatest finite half instead.
template <const CodecSpec& (*declared)(), Encode encode_all, Decode decode_all>
class HalfCodec final : public Codec {
 public:
  const CodecSpec& spec() const override { return declared(); }
  std::size_t block_bytes(std::size_t values) const override { return 2 * values; }
  void encode(std::span<const float> block, std::span<std::byte> into) override {
    encode_all(block.data(), halves(into), block.size());
  }
  void decode(std::span<const std::byte> from, std::span<float> block) const override {
    decode_all(halves(from), block.data(), block.size());
  }
};

template <class Half>
std::unique_ptr<Codec> make_half(double /*parameter*/) {
  return std::make_unique<Half>();
}

}  // namespace

/// bfloat16: the upper half of a float32.
/// Error: |x − decoded| ≤ 2^−8 |x| for normal x, except the very greatest.
const CodecSpec& bf16_codec() {
  using Bf16Codec = HalfCodec<bf16_codec, encode_as_bf16, decode_as_bf16>;
  static const CodecSpec spec{.name = "bf16", .number = 1, .make = make_half<Bf16Codec>};
  return spec;
}

/// binary16 of IEEE 754, whose greatest value is 65504.
/// Error: |x − decoded| ≤ max(2^−11 |x|, 2^−25) for |x| ≤ 65504.
const CodecSpec& fp16_codec() {
  using Fp16Codec = HalfCodec<fp16_codec, encode_as_fp16, decode_as_fp16>;
  static const CodecSpec spec{.name = "fp16", .number = 2, .make = make_half<Fp16Codec>};
  return spec;
}

}  // namespace syncopate
#endif  // HWY_ONCE
