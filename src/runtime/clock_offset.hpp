#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/time.hpp"
#include "wire/control.pb.h"

namespace syncopate {

/// A member's part in the estimation of its clock's offset: the least delay of pings, measured with
/// the clocks of both sides. The member reports it with its heartbeats.
///
/// Thread: any.
class ClockProbe {
 public:
  void ping_came(const wire::Ping& ping, TimePoint now) {
    const std::int64_t delay = now.time_since_epoch().count() - ping.sent();
    least_ = std::min(least_.load(), delay);
  }
  void stamp(wire::Heartbeat& heartbeat, TimePoint now) const {
    heartbeat.set_sent(now.time_since_epoch().count());
    if (const std::int64_t least = least_; least != none) {
      heartbeat.set_ping_delay(least);
    }
  }

 private:
  static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();

  std::atomic<std::int64_t> least_ = none;
};

/// The offset of a member's clock from the coordinator's, by the least delays in both directions
/// (Mills 1991, the clock filter of NTP): for a message that takes the time d, the receiver
/// measures d + offset or d − offset. Pure.
///
/// A drift of the clocks during the job is not noticed; it adds to `skew`.
class ClockOffset {
 public:
  struct Estimate {
    Duration offset{};  ///< the member's clock minus the coordinator's
    Duration skew{};    ///< the offset is not further from the true one than this
    friend bool operator==(const Estimate&, const Estimate&) = default;
  };

  /// A heartbeat arrived at `now` of the coordinator's clock.
  void heartbeat_came(const wire::Heartbeat& heartbeat, TimePoint now) {
    if (!heartbeat.has_ping_delay()) {
      return;
    }
    const Duration back = now.time_since_epoch() - Duration(heartbeat.sent());
    least_back_ = std::min(least_back_.value_or(back), back);
    const Duration there(heartbeat.ping_delay());
    estimate_ = {.offset = (there - *least_back_) / 2, .skew = (there + *least_back_) / 2};
  }

  /// Empty before the first ping has been answered.
  const std::optional<Estimate>& estimate() const { return estimate_; }

 private:
  std::optional<Duration> least_back_;
  std::optional<Estimate> estimate_;
};

}  // namespace syncopate
