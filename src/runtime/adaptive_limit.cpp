#include "runtime/adaptive_limit.hpp"

#include <algorithm>
#include <vector>

namespace syncopate {

AdaptiveLimit::AdaptiveLimit(Options options) : options_(options) {}

void AdaptiveLimit::observed(Duration duration) {
  recent_.push_back(duration);
  if (recent_.size() > options_.window) {
    recent_.pop_front();
  }
}

Duration AdaptiveLimit::median() const {
  if (recent_.empty()) {
    return Duration::zero();
  }
  std::vector<Duration> sorted(recent_.begin(), recent_.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

Duration AdaptiveLimit::limit() const {
  return std::max(options_.floor, from_seconds(options_.factor * to_seconds(median())));
}

}  // namespace syncopate
