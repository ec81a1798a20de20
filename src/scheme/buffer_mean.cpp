#include "scheme/buffer_mean.hpp"

#include <cmath>

namespace syncopate {
namespace {

/// Masks hold infinite values, which have no differences: they travel as they are.
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
