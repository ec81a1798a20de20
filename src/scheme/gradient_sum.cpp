#include "scheme/gradient_sum.hpp"

#include <algorithm>

#include "kernels/optimizer_steps.hpp"

namespace syncopate {

void GradientAccumulator::add(std::span<const float> mean, std::uint32_t samples) {
  sum_.resize(mean.size());
  add_scaled(sum_, samples, mean);
  samples_ += samples;
}

void GradientAccumulator::divided_into(std::span<float> into, double divisor) const {
  std::fill(into.begin(), into.end(), 0.0F);
  if (samples_ > 0) {
    add_scaled(into, 1 / divisor, sum_);
  }
}

void GradientAccumulator::clear() {
  std::fill(sum_.begin(), sum_.end(), 0.0F);
  samples_ = 0;
}

}  // namespace syncopate
