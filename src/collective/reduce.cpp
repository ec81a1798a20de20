// Compiled once for each instruction set that Highway knows on this architecture; the best one that
// the CPU has is chosen at the first call.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collective/reduce.cpp"
#include "collective/reduce.hpp"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace syncopate::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void add(float* HWY_RESTRICT into, const float* HWY_RESTRICT from, size_t count) {
  const hn::ScalableTag<float> lanes;
  const size_t width = hn::Lanes(lanes);
  size_t i = 0;
  for (; i + width <= count; i += width) {
    hn::StoreU(hn::Add(hn::LoadU(lanes, into + i), hn::LoadU(lanes, from + i)), lanes, into + i);
  }
  for (; i < count; ++i) {
    into[i] += from[i];
  }
}

void scale_and_add(float* HWY_RESTRICT into, float factor, const float* HWY_RESTRICT from,
                   size_t count) {
  const hn::ScalableTag<float> lanes;
  const size_t width = hn::Lanes(lanes);
  const auto factors = hn::Set(lanes, factor);
  size_t i = 0;
  for (; i + width <= count; i += width) {
    const auto scaled = hn::Mul(hn::LoadU(lanes, into + i), factors);
    hn::StoreU(hn::Add(scaled, hn::LoadU(lanes, from + i)), lanes, into + i);
  }
  for (; i < count; ++i) {
    into[i] = into[i] * factor + from[i];
  }
}

void scale(float* values, float factor, size_t count) {
  const hn::ScalableTag<float> lanes;
  const size_t width = hn::Lanes(lanes);
  const auto factors = hn::Set(lanes, factor);
  size_t i = 0;
  for (; i + width <= count; i += width) {
    hn::StoreU(hn::Mul(hn::LoadU(lanes, values + i), factors), lanes, values + i);
  }
  for (; i < count; ++i) {
    values[i] *= factor;
  }
}

void scale_into(float* HWY_RESTRICT into, float factor, const float* HWY_RESTRICT from,
                size_t count) {
  const hn::ScalableTag<float> lanes;
  const size_t width = hn::Lanes(lanes);
  const auto factors = hn::Set(lanes, factor);
  size_t i = 0;
  for (; i + width <= count; i += width) {
    hn::StoreU(hn::Mul(hn::LoadU(lanes, from + i), factors), lanes, into + i);
  }
  for (; i < count; ++i) {
    into[i] = from[i] * factor;
  }
}

void add_scaled(float* HWY_RESTRICT into, float factor, const float* HWY_RESTRICT from,
                size_t count) {
  const hn::ScalableTag<float> lanes;
  const size_t width = hn::Lanes(lanes);
  const auto factors = hn::Set(lanes, factor);
  size_t i = 0;
  for (; i + width <= count; i += width) {
    const auto scaled = hn::Mul(hn::LoadU(lanes, from + i), factors);
    hn::StoreU(hn::Add(hn::LoadU(lanes, into + i), scaled), lanes, into + i);
  }
  for (; i < count; ++i) {
    into[i] += from[i] * factor;
  }
}

void weighted_sum(const WeightedSum& sum) {
  // In the first-level cache, beside a part of one addend.
  constexpr size_t block = 2048;
  HWY_ALIGN float total[block];
  for (size_t at = 0; at < sum.count; at += block) {
    const size_t count = sum.count - at < block ? sum.count - at : block;
    scale_into(total, sum.factors[0], sum.addends[0] + at, count);
    for (size_t k = 1; k < sum.addends.size(); ++k) {
      add_scaled(total, sum.factors[k], sum.addends[k] + at, count);
    }
    for (float* const into : sum.into) {
      std::memcpy(into + at, total, count * sizeof(float));
    }
  }
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
