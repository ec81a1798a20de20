#include "train/step_forecast.hpp"

#include <algorithm>

namespace syncopate {
namespace {

constexpr std::size_t window = 64;

}  // namespace

void StepForecast::took(std::uint32_t samples, Duration duration) {
  if (samples == 0) {
    return;
  }
  sample_seconds_.push_back(to_seconds(duration) / samples);
  if (sample_seconds_.size() > window) {
    sample_seconds_.pop_front();
  }
}

Duration StepForecast::longest(std::uint32_t samples) const {
  return known() ? from_seconds(samples * *std::ranges::max_element(sample_seconds_))
                 : Duration::zero();
}

}  // namespace syncopate
