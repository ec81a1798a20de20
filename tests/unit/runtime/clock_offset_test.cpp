// Goal:   the offset of a member's clock is estimated from pings and heartbeats, and the true error
//         stays within the bound given with it.
// Method: a clock that is ahead by a known time, messages with chosen delays.

#include "runtime/clock_offset.hpp"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

using namespace std::chrono_literals;

constexpr Duration ahead = 5s;  // the member's clock

struct Exchange {
  /// Sends a ping that takes `delay`.
  void ping(Duration delay) {
    wire::Ping ping;
    ping.set_sent(now.time_since_epoch().count());
    probe.ping_came(ping, now + delay + ahead);
  }
  void heartbeat(Duration delay) {
    wire::Heartbeat heartbeat;
    probe.stamp(heartbeat, now + ahead);
    offset.heartbeat_came(heartbeat, now + delay);
  }

  TimePoint now{100s};
  ClockProbe probe{};
  ClockOffset offset{};
};

TEST(ClockOffset, IsUnknownBeforeAPingHasCome) {
  Exchange exchange;
  exchange.heartbeat(1ms);
  EXPECT_FALSE(exchange.offset.estimate());
}

TEST(ClockOffset, IsExactWhereBothDirectionsTakeTheSameTime) {
  Exchange exchange;
  exchange.ping(2ms);
  exchange.heartbeat(2ms);
  EXPECT_EQ(exchange.offset.estimate(), (ClockOffset::Estimate{.offset = ahead, .skew = 2ms}));
}

TEST(ClockOffset, TakesTheLeastDelayOfEachDirection) {
  Exchange exchange;
  exchange.ping(40ms);
  exchange.heartbeat(3ms);
  exchange.ping(1ms);
  exchange.heartbeat(70ms);
  const auto estimate = *exchange.offset.estimate();
  EXPECT_EQ(estimate.offset, ahead - 1ms);
  EXPECT_EQ(estimate.skew, 2ms);
  EXPECT_LE(ahead - estimate.offset, estimate.skew) << "the bound holds";
}

}  // namespace
}  // namespace syncopate
