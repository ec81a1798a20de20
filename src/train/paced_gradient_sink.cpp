#include "train/paced_gradient_sink.hpp"

#include "kernels/reduce.hpp"

namespace syncopate {

void PacedGradientSink::begin(GradientSink* to, std::span<const float> gradient, Hold hold) {
  to_ = to;
  gradient_ = gradient;
  hold_ = hold;
  held_.clear();
  finite_ = true;
}

void PacedGradientSink::ready(std::size_t begin, std::size_t end) {
  finite_ = finite_ && all_finite(gradient_.subspan(begin, end - begin));
  if (!finite_) {
    return;
  }
  if (hold_ == Hold::yes) {
    held_.push_back({begin, end});
  } else {
    to_->ready(begin, end);
  }
}

void PacedGradientSink::let_through(World& world, TimePoint begun, TimePoint due) {
  const TimePoint forward_done = begun + (due - begun) / 3;
  std::size_t made = 0;
  for (const Range& range : held_) {
    made += range.end - range.begin;
    const double share = static_cast<double>(made) / static_cast<double>(gradient_.size());
    const TimePoint when = forward_done + from_seconds(to_seconds(due - forward_done) * share);
    if (when > world.now()) {
      world.sleep_until(when);
    }
    if (finite_) {
      to_->ready(range.begin, range.end);
    }
  }
  held_.clear();
}

}  // namespace syncopate
