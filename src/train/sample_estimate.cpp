#include "train/sample_estimate.hpp"

#include <algorithm>

namespace syncopate {

void SampleEstimate::synchronized(std::uint64_t samples, std::uint64_t since) {
  const double brought = own_ - static_cast<double>(since);
  if (brought > 0 && samples > 0) {
    share_ = std::min(1.0, brought / static_cast<double>(samples));
  }
  synchronized_ += static_cast<double>(samples);
  own_ = static_cast<double>(since);
}

double SampleEstimate::when_taken(std::uint32_t step_samples) const {
  return synchronized_ + own_ / share_ + step_samples * std::max(0.0, 1 / share_ - 1 / step_share_);
}

}  // namespace syncopate
