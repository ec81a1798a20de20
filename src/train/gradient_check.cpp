#include "train/gradient_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/errors.hpp"

namespace syncopate {
namespace {

/// If this many gradients in a row are not finite, the model is the cause, not the batches.
constexpr std::uint64_t hopeless = 100;

}  // namespace

void GradientCheck::keep_buffers() {
  if (policy_ == NanPolicy::skip) {
    const std::span<const float> buffers = replica_.view(ReplicaVector::buffers);
    buffers_.assign(buffers.begin(), buffers.end());
  }
}

bool GradientCheck::admit(bool finite, std::uint64_t step, std::optional<double> loss) {
  if (finite) {
    skipped_in_a_row_ = 0;
    return true;
  }
  if (++skipped_in_a_row_ >= hopeless) {
    throw NotFinite(fmt::format(
        "worker {}, step {}: the gradients of {} batches in a row are not finite, so the model is "
        "lost; begin again with a lower learning rate",
        worker_.value, step, hopeless));
  }
  if (policy_ == NanPolicy::stop) {
    throw NotFinite(fmt::format(
        "worker {}, step {}: the gradient of a batch{} is not finite; lower the learning rate, or "
        "skip such batches by --on-nan skip",
        worker_.value, step, loss ? fmt::format(" with loss {:.4g}", *loss) : ""));
  }
  std::ranges::copy(buffers_, replica_.view(ReplicaVector::buffers).begin());
  replica_.store(ReplicaVector::buffers);
  return false;
}

}  // namespace syncopate
