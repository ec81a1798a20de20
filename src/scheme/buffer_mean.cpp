#include "scheme/buffer_mean.hpp"

#include <cmath>

namespace syncopate {
namespace {

/// Returns the value from which a change is computed. It is 0 for an infinite value, such as one of
/// a mask, so that this value is reduced as it is: the difference of two infinite values is NaN.
float origin(float last) {
  return std::isfinite(last) ? last : 0;
}

}  // namespace

void BufferMean::reduce(Allreduce& allreduce, std::span<float> buffers, const Weight& weight,
                        bool all_have_last) {
  if (all_have_last) {
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      buffers[i] -= origin(last_[i]);
    }
  }
  allreduce.weighted_mean(buffers, weight.own, weight.total);
  if (all_have_last) {
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      buffers[i] += origin(last_[i]);
    }
  }
  last_.assign(buffers.begin(), buffers.end());
  has_last_ = true;
}

}  // namespace syncopate
