// Compiled once for each instruction set that Highway knows on this architecture; the best one that
// the CPU has is chosen at the first call.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/momentum_correction.cpp"
#include "codec/momentum_correction.hpp"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace syncopate::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// What is not finite counts as 0 in what is remembered.
template <class Tag, class Vec>
HWY_INLINE void remember(Tag tag, Vec values, float* into) {
  hn::StoreU(hn::IfThenElseZero(hn::IsFinite(values), values), tag, into);
}

struct ToVelocity {
  float factor;
  float momentum;
  float follows;
  float ahead;

  template <class Tag>
  HWY_INLINE void operator()(Tag tag, float* values, float* own) const {
    const auto times = [&](float factor, auto each) { return hn::Mul(hn::Set(tag, factor), each); };
    const auto gradient = times(factor, hn::LoadU(tag, values));
    const auto velocity = hn::Add(times(momentum, hn::LoadU(tag, own)), gradient);
    hn::StoreU(hn::Add(times(follows, velocity), times(ahead, gradient)), tag, values);
    remember(tag, velocity, own);
  }
};

struct ToGradient {
  float momentum;

  template <class Tag>
  HWY_INLINE void operator()(Tag tag, float* values, float* all) const {
    const auto kept = hn::Mul(hn::LoadU(tag, all), hn::Set(tag, momentum));
    const auto gradient = hn::Sub(hn::LoadU(tag, values), kept);
    hn::StoreU(gradient, tag, values);
    remember(tag, hn::Add(kept, gradient), all);
  }
};

template <class Step>
HWY_INLINE void for_all(const Step& step, float* values, float* remembered, size_t count) {
  const hn::ScalableTag<float> lanes;
  const size_t width = hn::Lanes(lanes);
  size_t i = 0;
  for (; i + width <= count; i += width) {
    step(lanes, values + i, remembered + i);
  }
  for (; i < count; ++i) {
    step(hn::CappedTag<float, 1>(), values + i, remembered + i);
  }
}

void to_velocity(float* values, float* own, size_t count, MomentumCorrection::Options options,
                 float factor) {
  const ToVelocity step{.factor = factor,
                        .momentum = static_cast<float>(options.momentum),
                        .follows = static_cast<float>(1 - options.ahead),
                        .ahead = static_cast<float>(options.ahead / (1 - options.momentum))};
  for_all(step, values, own, count);
}

void to_gradient(float* values, float* all, size_t count, double momentum) {
  for_all(ToGradient{static_cast<float>(momentum)}, values, all, count);
}

}  // namespace syncopate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate {

HWY_EXPORT(to_velocity);
HWY_EXPORT(to_gradient);

void MomentumCorrection::reserve(std::size_t values) {
  own_.resize(std::max(own_.size(), values));
  all_.resize(own_.size());
}

void MomentumCorrection::to_velocity(std::span<float> values, float factor, std::size_t first) {
  HWY_DYNAMIC_DISPATCH(to_velocity)
  (values.data(), own_.data() + first, values.size(), options_, factor);
}

void MomentumCorrection::to_gradient(std::span<float> values, std::size_t first) {
  HWY_DYNAMIC_DISPATCH(to_gradient)
  (values.data(), all_.data() + first, values.size(), options_.momentum);
}

double part_ahead(const Compression& compression) {
  constexpr double usual = 0.3;
  switch (compression.kind) {
    case Compression::Kind::onebit: return usual;
    case Compression::Kind::topk: return usual * (1 - compression.ratio);
    case Compression::Kind::none:
    case Compression::Kind::bf16:
    case Compression::Kind::fp16:
    case Compression::Kind::int8: break;
  }
  return 0;
}

}  // namespace syncopate
#endif  // HWY_ONCE
