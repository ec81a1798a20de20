// Compiled once for each instruction set that Highway knows on this architecture; the best one that
// the CPU has is chosen at the first call.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/finite.cpp"
#include "kernels/finite.hpp"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace syncopate::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// The greatest of the values' bits without their signs. The exponent stands in the highest of them,
/// so infinity is greater than any finite value, and NaN greater still.
template <class Tag>
HWY_INLINE hn::Vec<Tag> greater_magnitude(Tag tag, hn::Vec<Tag> greatest, const float* values) {
  const hn::RebindToFloat<Tag> floats;
  const auto bits = hn::BitCast(tag, hn::Abs(hn::LoadU(floats, values)));
  return hn::Max(greatest, bits);
}

template <class Tag>
HWY_INLINE bool finite_in(Tag tag, const float* values, size_t count) {
  const size_t width = hn::Lanes(tag);
  auto first = hn::Zero(tag);
  auto second = hn::Zero(tag);  // two chains, for loads that come faster than one can take them
  size_t i = 0;
  for (; i + 2 * width <= count; i += 2 * width) {
    first = greater_magnitude(tag, first, values + i);
    second = greater_magnitude(tag, second, values + i + width);
  }
  for (; i + width <= count; i += width) first = greater_magnitude(tag, first, values + i);
  const auto infinity = hn::Set(tag, 0x7f800000);
  return hn::AllTrue(tag, hn::Lt(hn::Max(first, second), infinity));
}

bool all_finite(const float* values, size_t count) {
  constexpr size_t block = 4096;
  const hn::ScalableTag<int32_t> lanes;
  const size_t in_vectors = count - count % hn::Lanes(lanes);
  for (size_t i = 0; i < in_vectors; i += block) {
    if (!finite_in(lanes, values + i, HWY_MIN(block, in_vectors - i))) return false;
  }
  return finite_in(hn::CappedTag<int32_t, 1>(), values + in_vectors, count - in_vectors);
}

}  // namespace syncopate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate {

HWY_EXPORT(all_finite);

bool all_finite(std::span<const float> values) {
  return HWY_DYNAMIC_DISPATCH(all_finite)(values.data(), values.size());
}

}  // namespace syncopate
#endif  // HWY_ONCE
