#pragma once

#include <cstddef>
#include <deque>

#include "base/time.hpp"

namespace syncopate {

/// How long a wait may take before it counts as lost: many times what it usually takes.
///
/// limit = max(floor, factor · median of the last `window` durations). The median makes one outage
/// leave no trace; the floor covers first waits, of which nothing is known.
class AdaptiveLimit {
 public:
  struct Options {
    Duration floor = std::chrono::seconds(60);
    double factor = 20;
    std::size_t window = 64;
  };

  explicit AdaptiveLimit(Options options);

  void observed(Duration duration);
  Duration limit() const;
  /// Zero before the first observation.
  Duration median() const;

 private:
  Options options_;
  std::deque<Duration> recent_;
};

}  // namespace syncopate
