#include "scheme/late_mean.hpp"

#include <algorithm>
#include <cstddef>

namespace syncopate {

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
