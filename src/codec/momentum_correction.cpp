#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/momentum_correction.cpp"
#include "codec/momentum_correction.hpp"

#include <hwy/foreach_target.h>

#include <algorithm>

#include "kernels/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::HWY_NAMESPACE {

/// Stores the finite values, and 0 for the others.
template <class Tag>
HWY_INLINE void remember(Tag tag, hn::Vec<Tag> values, float* into) {
  hn::StoreU(hn::IfThenElseZero(hn::IsFinite(values), values), tag, into);
}

template <class Tag>
HWY_INLINE hn::Vec<Tag> times(Tag tag, float factor, hn::Vec<Tag> values) {
  return hn::Mul(hn::Set(tag, factor), values);
}

void to_velocity(float* values, float* own, size_t count, MomentumCorrection::Options options,
                 float factor) {
  const auto momentum = static_cast<float>(options.momentum);
  const auto follows = static_cast<float>(1 - options.ahead);
  const auto ahead = static_cast<float>(options.ahead / (1 - options.momentum));
  for_lanes(count, [=](auto tag, size_t i) HWY_ATTR {
    const auto gradient = times(tag, factor, hn::LoadU(tag, values + i));
    const auto velocity = hn::Add(times(tag, momentum, hn::LoadU(tag, own + i)), gradient);
    const auto sent = hn::Add(times(tag, follows, velocity), times(tag, ahead, gradient));
    hn::StoreU(sent, tag, values + i);
    remember(tag, velocity, own + i);
  });
}

void to_gradient(float* values, float* all, size_t count, double momentum) {
  const auto keep = static_cast<float>(momentum);
  for_lanes(count, [=](auto tag, size_t i) HWY_ATTR {
    const auto kept = hn::Mul(hn::LoadU(tag, all + i), hn::Set(tag, keep));
    const auto gradient = hn::Sub(hn::LoadU(tag, values + i), kept);
    hn::StoreU(gradient, tag, values + i);
    remember(tag, hn::Add(kept, gradient), all + i);
  });
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

double gradient_ahead(const Compression& compression) {
  return compression ? compression.codec->gradient_ahead(compression.parameter) : 0;
}

}  // namespace syncopate
#endif  // HWY_ONCE
