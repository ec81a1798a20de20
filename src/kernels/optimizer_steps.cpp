#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/optimizer_steps.cpp"
#include "kernels/optimizer_steps.hpp"

#include <hwy/foreach_target.h>

#include <cmath>

#include "kernels/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::HWY_NAMESPACE {

template <class Tag>
HWY_INLINE hn::Vec<Tag> times(Tag tag, double factor, hn::Vec<Tag> values) {
  return hn::Mul(hn::Set(tag, static_cast<float>(factor)), values);
}

/// The gradient of the step at the lanes from `i` on, whose parameters are `values`.
template <class Tag>
HWY_INLINE hn::Vec<Tag> gradient_at(Tag tag, const StepBlock& block, size_t i,
                                    hn::Vec<Tag> values) {
  const auto scaled = times(tag, block.scale, hn::LoadU(tag, block.gradient.data() + i));
  return block.decay == 0 ? scaled : hn::Add(scaled, times(tag, block.decay, values));
}

/// smoothing · mean + (1 − smoothing) · root², the product from left to right.
template <class Tag>
HWY_INLINE hn::Vec<Tag> smoothed_square(Tag tag, double smoothing, hn::Vec<Tag> mean,
                                        hn::Vec<Tag> root) {
  return hn::Add(times(tag, smoothing, mean), hn::Mul(times(tag, 1 - smoothing, root), root));
}

template <class Tag>
HWY_INLINE hn::Vec<Tag> root_and_epsilon(Tag tag, hn::Vec<Tag> square, double epsilon) {
  return hn::Add(hn::Sqrt(square), hn::Set(tag, static_cast<float>(epsilon)));
}

void sgd_step(StepBlock block, double rate) {
  float* const out = block.values.data();
  for_lanes<4>(block.values.size(), [=](auto tag, size_t i) HWY_ATTR {
    const auto values = hn::LoadU(tag, out + i);
    const auto gradient = gradient_at(tag, block, i, values);
    hn::StoreU(hn::Sub(values, times(tag, rate, gradient)), tag, out + i);
  });
}

void momentum_step(StepBlock block, float* velocity, MomentumStep step) {
  float* const out = block.values.data();
  for_lanes<2>(block.values.size(), [=](auto tag, size_t i) HWY_ATTR {
    const auto values = hn::LoadU(tag, out + i);
    const auto gradient = gradient_at(tag, block, i, values);
    const auto moved = hn::Add(times(tag, step.momentum, hn::LoadU(tag, velocity + i)), gradient);
    hn::StoreU(moved, tag, velocity + i);
    const auto along = step.nesterov ? hn::Add(gradient, times(tag, step.momentum, moved)) : moved;
    hn::StoreU(hn::Sub(values, times(tag, step.rate, along)), tag, out + i);
  });
}

void adagrad_step(StepBlock block, float* sum, AdagradStep step) {
  float* const out = block.values.data();
  for_lanes<2>(block.values.size(), [=](auto tag, size_t i) HWY_ATTR {
    const auto values = hn::LoadU(tag, out + i);
    const auto gradient = gradient_at(tag, block, i, values);
    const auto grown = hn::Add(hn::LoadU(tag, sum + i), hn::Mul(gradient, gradient));
    hn::StoreU(grown, tag, sum + i);
    const auto divisor = root_and_epsilon(tag, grown, step.epsilon);
    hn::StoreU(hn::Sub(values, hn::Div(times(tag, step.rate, gradient), divisor)), tag, out + i);
  });
}

void rmsprop_step(StepBlock block, float* mean_square, RmspropStep step) {
  float* const out = block.values.data();
  for_lanes<2>(block.values.size(), [=](auto tag, size_t i) HWY_ATTR {
    const auto values = hn::LoadU(tag, out + i);
    const auto gradient = gradient_at(tag, block, i, values);
    const auto mean =
        smoothed_square(tag, step.smoothing, hn::LoadU(tag, mean_square + i), gradient);
    hn::StoreU(mean, tag, mean_square + i);
    const auto divisor = root_and_epsilon(tag, mean, step.epsilon);
    hn::StoreU(hn::Sub(values, hn::Div(times(tag, step.rate, gradient), divisor)), tag, out + i);
  });
}

void adam_step(StepBlock block, AdamMoments moments, AdamStep step) {
  float* const out = block.values.data();
  float* const means = moments.mean.data();
  float* const mean_squares = moments.mean_square.data();
  const double rate = step.rate / step.correction1;
  const double root_correction = 1 / std::sqrt(step.correction2);
  for_lanes<2>(block.values.size(), [=](auto tag, size_t i) HWY_ATTR {
    const auto values = hn::LoadU(tag, out + i);
    const auto gradient = gradient_at(tag, block, i, values);
    const auto mean = hn::Add(times(tag, step.beta1, hn::LoadU(tag, means + i)),
                              times(tag, 1 - step.beta1, gradient));
    hn::StoreU(mean, tag, means + i);
    const auto square =
        smoothed_square(tag, step.beta2, hn::LoadU(tag, mean_squares + i), gradient);
    hn::StoreU(square, tag, mean_squares + i);
    const auto divisor = hn::Add(times(tag, root_correction, hn::Sqrt(square)),
                                 hn::Set(tag, static_cast<float>(step.epsilon)));
    hn::StoreU(hn::Sub(times(tag, step.keep, values), hn::Div(times(tag, rate, mean), divisor)),
               tag, out + i);
  });
}

/// gradient + lambda · gradient² · (values − backup), the product from left to right.
template <class Tag>
HWY_INLINE void compensate(Tag tag, const DelayedBlock& block, size_t i, hn::Vec<Tag> lambda) {
  const auto gradient = hn::LoadU(tag, block.gradient.data() + i);
  const auto moved =
      hn::Sub(hn::LoadU(tag, block.values.data() + i), hn::LoadU(tag, block.backup.data() + i));
  const auto slope = hn::Mul(hn::Mul(lambda, gradient), gradient);
  hn::StoreU(hn::Add(gradient, hn::Mul(slope, moved)), tag, block.gradient.data() + i);
}

void compensate_delay(DelayedBlock block, double lambda) {
  for_lanes<2>(block.gradient.size(), [=](auto tag, size_t i) HWY_ATTR {
    compensate(tag, block, i, hn::Set(tag, static_cast<float>(lambda)));
  });
}

void compensate_delay_adaptively(DelayedBlock block, float* mean_square, AdaptiveDelay delay) {
  for_lanes<2>(block.gradient.size(), [=](auto tag, size_t i) HWY_ATTR {
    const auto mean = smoothed_square(tag, delay.smoothing, hn::LoadU(tag, mean_square + i),
                                      hn::LoadU(tag, block.gradient.data() + i));
    hn::StoreU(mean, tag, mean_square + i);
    const auto root = hn::Sqrt(hn::Add(mean, hn::Set(tag, static_cast<float>(delay.epsilon))));
    compensate(tag, block, i, hn::Div(hn::Set(tag, static_cast<float>(delay.lambda)), root));
  });
}

void elastic_exchange(float* replica, float* centre, size_t count, double alpha) {
  for_lanes<4>(count, [=](auto tag, size_t i) HWY_ATTR {
    const auto ours = hn::LoadU(tag, replica + i);
    const auto theirs = hn::LoadU(tag, centre + i);
    const auto pull = times(tag, alpha, hn::Sub(ours, theirs));
    hn::StoreU(hn::Add(theirs, pull), tag, centre + i);
    hn::StoreU(hn::Sub(ours, pull), tag, replica + i);
  });
}

void add_scaled(float* into, double factor, const float* from, size_t count) {
  for_lanes<4>(count, [=](auto tag, size_t i) HWY_ATTR {
    const auto scaled = times(tag, factor, hn::LoadU(tag, from + i));
    hn::StoreU(hn::Add(hn::LoadU(tag, into + i), scaled), tag, into + i);
  });
}

}  // namespace syncopate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate {

HWY_EXPORT(sgd_step);
HWY_EXPORT(momentum_step);
HWY_EXPORT(adagrad_step);
HWY_EXPORT(rmsprop_step);
HWY_EXPORT(adam_step);
HWY_EXPORT(compensate_delay);
HWY_EXPORT(compensate_delay_adaptively);
HWY_EXPORT(elastic_exchange);
HWY_EXPORT(add_scaled);

void sgd_step(const StepBlock& block, double rate) {
  HWY_DYNAMIC_DISPATCH(sgd_step)(block, rate);
}

void momentum_step(const StepBlock& block, std::span<float> velocity, const MomentumStep& step) {
  HWY_DYNAMIC_DISPATCH(momentum_step)(block, velocity.data(), step);
}

void adagrad_step(const StepBlock& block, std::span<float> sum, const AdagradStep& step) {
  HWY_DYNAMIC_DISPATCH(adagrad_step)(block, sum.data(), step);
}

void rmsprop_step(const StepBlock& block, std::span<float> mean_square, const RmspropStep& step) {
  HWY_DYNAMIC_DISPATCH(rmsprop_step)(block, mean_square.data(), step);
}

void adam_step(const StepBlock& block, const AdamMoments& moments, const AdamStep& step) {
  HWY_DYNAMIC_DISPATCH(adam_step)(block, moments, step);
}

void compensate_delay(const DelayedBlock& block, double lambda) {
  HWY_DYNAMIC_DISPATCH(compensate_delay)(block, lambda);
}

void compensate_delay_adaptively(const DelayedBlock& block, std::span<float> mean_square,
                                 const AdaptiveDelay& delay) {
  HWY_DYNAMIC_DISPATCH(compensate_delay_adaptively)(block, mean_square.data(), delay);
}

void elastic_exchange(std::span<float> replica, std::span<float> centre, double alpha) {
  HWY_DYNAMIC_DISPATCH(elastic_exchange)(replica.data(), centre.data(), replica.size(), alpha);
}

void add_scaled(std::span<float> into, double factor, std::span<const float> from) {
  HWY_DYNAMIC_DISPATCH(add_scaled)(into.data(), factor, from.data(), into.size());
}

}  // namespace syncopate
#endif  // HWY_ONCE
