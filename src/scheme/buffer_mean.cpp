#include "scheme/buffer_mean.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace syncopate {
namespace {

/// Returns the value from which a change is computed. It is 0 for an infinite value, such as one of
/// a mask, so that this value is reduced as it is: the difference of two infinite values is NaN.
float origin(float last) {
  return std::isfinite(last) ? last : 0;
}

}  // namespace

void BufferMean::begin(std::span<float> buffers, bool all_have_last) const {
  for (std::size_t i = 0; all_have_last && i < buffers.size(); ++i) {
    buffers[i] -= origin(last_[i]);
  }
}

void BufferMean::end(std::span<float> buffers, bool all_have_last) {
  for (std::size_t i = 0; all_have_last && i < buffers.size(); ++i) {
    buffers[i] += origin(last_[i]);
  }
  last_.assign(buffers.begin(), buffers.end());
  has_last_ = true;
}

void take_late_mean(std::span<float> buffers, std::span<const float> contributed,
                    std::span<const float> mean) {
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    // An unchanged value becomes the mean itself: the difference of infinite values, as in masks,
    // is NaN.
    if (buffers[i] == contributed[i]) {
      buffers[i] = mean[i];
    } else {
      const auto [least, most] = std::minmax(buffers[i], mean[i]);
      buffers[i] = std::clamp(buffers[i] - contributed[i] + mean[i], least, most);
    }
  }
}

}  // namespace syncopate
