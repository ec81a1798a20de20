// Compiled once for each instruction set that Highway knows on this architecture; the best one that
// the CPU has is chosen at the first call.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce.cpp"
#include "kernels/reduce.hpp"

#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace syncopate::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Calls body(tag, i) for all lanes of 0 to count − 1: most as whole vectors, then single values.
template <class Body>
HWY_INLINE void for_lanes(size_t count, const Body& body) {
  const hn::ScalableTag<float> vectors;
  const hn::CappedTag<float, 1> single;
  const size_t width = hn::Lanes(vectors);
  size_t i = 0;
  for (; i + width <= count; i += width) body(vectors, i);
  for (; i < count; ++i) body(single, i);
}

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

/// All addends are read side by side, so that no sum waits in memory for the next addend. Each is in pages of its own,
/// where the processor by itself fetches ahead too late: it is told where to, 8 lines of the cache ahead.
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

const char* kernel_target() {
  return HWY_DYNAMIC_DISPATCH(target)();
}

}  // namespace syncopate
#endif  // HWY_ONCE
