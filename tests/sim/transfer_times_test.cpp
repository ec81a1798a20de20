// Goal:   transfers take the times of the closed formulas, to the nanosecond.
// Method: the test books messages at known times and compares with times computed by hand from the
//         profile: 1 byte per nanosecond, 5 microseconds of latency.

#include "sim/transfer_times.hpp"

#include <gtest/gtest.h>

namespace syncopate::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr NodeId a{0};
constexpr NodeId b{1};
constexpr NodeId c{2};
constexpr LinkProfile link{.bandwidth = 1e9, .latency = microseconds(5)};

TimePoint ns(std::int64_t count) {
  return TimePoint(nanoseconds(count));
}

TransferTimes plain() {
  return TransferTimes({.link = link}, 1);
}

/// Books a message that shares no network interface or link with another one; returns its time of
/// arrival.
TimePoint deliver(TransferTimes& times, TimePoint now, NodeId from, NodeId to, std::size_t bytes) {
  return times.arrive(times.depart(now, from, to, bytes), to, bytes);
}

TEST(TransferTimes, AMessageAloneTakesLatencyPlusBytesOverBandwidth) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{44'700'000}}) {
    TransferTimes times = plain();
    const auto size = static_cast<std::int64_t>(bytes);
    EXPECT_EQ(deliver(times, ns(100), a, b, bytes), ns(100 + 5000 + size));
    EXPECT_EQ(times.sent_by(a), ns(100 + size));
  }
}

TEST(TransferTimes, TheCardOfASenderServesOneMessageAfterTheOther) {
  TransferTimes times = plain();
  EXPECT_EQ(deliver(times, ns(0), a, b, 1000), ns(6000));
  EXPECT_EQ(deliver(times, ns(0), a, c, 1000), ns(7000));
  EXPECT_EQ(deliver(times, ns(0), a, b, 10), ns(7010));
  EXPECT_EQ(deliver(times, ns(50'000), a, b, 10), ns(55'010)) << "the network card has been idle";
}

TEST(TransferTimes, TheCardOfAReceiverServesOneMessageAfterTheOther) {
  TransferTimes times = plain();
  const Passage of_a = times.depart(ns(0), a, c, 1000);
  const Passage of_b = times.depart(ns(0), b, c, 1000);
  EXPECT_EQ(of_a.first_byte, of_b.first_byte) << "two network cards send at the same time";
  EXPECT_EQ(times.arrive(of_a, c, 1000), ns(6000));
  EXPECT_EQ(times.arrive(of_b, c, 1000), ns(7000));
}

TEST(TransferTimes, BothDirectionsOfACardAreIndependent) {
  TransferTimes times = plain();
  EXPECT_EQ(deliver(times, ns(0), a, b, 1000), ns(6000));
  EXPECT_EQ(deliver(times, ns(0), b, a, 1000), ns(6000));
}

TEST(TransferTimes, ASlowLinkHoldsUpItsOwnMessagesOnly) {
  TransferTimes times = plain();
  times.set_link(a, b, {.bandwidth = 1e8, .latency = microseconds(20)});
  EXPECT_EQ(deliver(times, ns(0), a, b, 1000), ns(20'000 + 10'000));
  EXPECT_EQ(deliver(times, ns(0), a, b, 1000), ns(20'000 + 20'000)) << "one after the other";
  EXPECT_EQ(deliver(times, ns(0), a, c, 1000), ns(3000 + 5000))
      << "the network card is not the link";
  EXPECT_EQ(deliver(times, ns(10'000), b, a, 1000), ns(16'000)) << "the way back is as before";
}

TEST(TransferTimes, ACardSlowerThanTheLinkDecides) {
  TransferTimes times({.link = link, .nic_bandwidth = 5e8}, 1);
  EXPECT_EQ(deliver(times, ns(0), a, b, 1000), ns(5000 + 2000));
  EXPECT_EQ(deliver(times, ns(0), a, c, 1000), ns(5000 + 4000));
}

TEST(TransferTimes, ALinkThatBecomesFasterKeepsTheOrderOfItsMessages) {
  TransferTimes times = plain();
  times.set_link(a, b, {.bandwidth = 1e6, .latency = microseconds(1000)});
  const Passage slow = times.depart(ns(0), a, b, 1000);
  EXPECT_EQ(slow.last_byte, ns(2'000'000));
  times.set_link(a, b, link);
  const Passage fast = times.depart(ns(1000), a, b, 10);
  EXPECT_GE(fast.first_byte, slow.last_byte);
  EXPECT_EQ(times.arrive(slow, b, 1000), ns(2'000'000));
  EXPECT_EQ(times.arrive(fast, b, 10), ns(2'000'010));
}

TEST(TransferTimes, JitterStretchesLatencyWithinItsBounds) {
  constexpr std::uint64_t seed = 99;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  TransferTimes times({.link = link, .jitter = 0.5}, seed);
  Duration sum{};
  constexpr int count = 1000;
  for (int i = 0; i < count; ++i) {
    const TimePoint start = ns(1'000'000L * i);
    const Duration taken = deliver(times, start, a, b, 0) - start;
    EXPECT_GE(taken, microseconds(5));
    EXPECT_LT(taken, nanoseconds(7500));
    sum += taken;
  }
  EXPECT_NEAR(to_seconds(sum) / count, 6.25e-6, 0.1e-6);
}

}  // namespace
}  // namespace syncopate::sim
