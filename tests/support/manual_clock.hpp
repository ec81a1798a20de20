#pragma once

#include "base/time.hpp"

namespace syncopate {

/// A clock that a test advances. It starts at 1,000 s.
class ManualClock : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(Duration duration) { now_ += duration; }

 private:
  TimePoint now_{std::chrono::seconds(1'000)};
};

}  // namespace syncopate
