#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce.cpp"
#include "kernels/reduce.hpp"

#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>

#include "kernels/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::HWY_NAMESPACE {

void add(float* into, const float* from, size_t count) {
  for_lanes(count, [=](auto tag, size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(tag, into + i), hn::LoadU(tag, from + i)), tag, into + i);
  });
}

void scale_and_add(float* into, float factor, const float* from, size_t count) {
  for_lanes(count, [=](auto tag, size_t i) HWY_ATTR {
    const auto scaled = hn::Mul(hn::LoadU(tag, into + i), hn::Set(tag, factor));
    hn::StoreU(hn::Add(scaled, hn::LoadU(tag, from + i)), tag, into + i);
  });
}

void scale(float* values, float factor, size_t count) {
  for_lanes(count, [=](auto tag, size_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(tag, values + i), hn::Set(tag, factor)), tag, values + i);
  });
}

/// Reads all addends side by side, so no partial sum goes to memory. Each addend is in pages of its
/// own, where the processor prefetches too late by itself: hence the explicit prefetch, 8 cache
/// lines ahead.
void weighted_sum(const WeightedSum& sum) {
  constexpr size_t ahead = 128;
  for_lanes(sum.count, [&](auto tag, size_t i) HWY_ATTR {
    const auto scaled = [&](size_t k) HWY_ATTR {
      hwy::Prefetch(sum.addends[k] + i + ahead);
      return hn::Mul(hn::LoadU(tag, sum.addends[k] + i), hn::Set(tag, sum.factors[k]));
    };
    auto total = scaled(0);
    for (size_t k = 1; k < sum.addends.size(); ++k) {
      total = hn::Add(total, scaled(k));
    }
    for (float* const into : sum.into) {
      hn::StoreU(total, tag, into + i);
    }
  });
}

template <class Tag>
HWY_INLINE bool finite_in(Tag tag, const float* values, size_t count) {
  const size_t width = hn::Lanes(tag);
  auto first = hn::Zero(tag);
  auto second = hn::Zero(tag);  // two chains, since loads are faster than one chain
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

const char* target() {
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace syncopate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate {

HWY_EXPORT(add);
HWY_EXPORT(scale_and_add);
HWY_EXPORT(scale);
HWY_EXPORT(weighted_sum);
HWY_EXPORT(all_finite);
HWY_EXPORT(target);

void add(std::span<float> into, std::span<const float> from) {
  HWY_DYNAMIC_DISPATCH(add)(into.data(), from.data(), into.size());
}

void scale_and_add(std::span<float> into, float factor, std::span<const float> from) {
  HWY_DYNAMIC_DISPATCH(scale_and_add)(into.data(), factor, from.data(), into.size());
}

void scale(std::span<float> values, float factor) {
  if (factor != 1) {
    HWY_DYNAMIC_DISPATCH(scale)(values.data(), factor, values.size());
  }
}

void weighted_sum(const WeightedSum& sum) {
  HWY_DYNAMIC_DISPATCH(weighted_sum)(sum);
}

bool all_finite(std::span<const float> values) {
  return HWY_DYNAMIC_DISPATCH(all_finite)(values.data(), values.size());
}

const char* kernel_target() {
  return HWY_DYNAMIC_DISPATCH(target)();
}

}  // namespace syncopate
#endif  // HWY_ONCE
