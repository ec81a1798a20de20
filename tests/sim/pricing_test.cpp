// Goal:   the network costs what its closed formulas say, to the nanosecond.
// Method: messages are booked by hand at known times; expected times are written down from the
//         profile: 1 byte per nanosecond, 5 microseconds of latency.

#include "sim/pricing.hpp"

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

Pricing plain() {
  return Pricing({.link = link}, 1);
}

/// Books a message whose way nothing else crosses while it is on the way.
TimePoint deliver(Pricing& pricing, TimePoint now, NodeId from, NodeId to, std::size_t bytes) {
  return pricing.arrive(pricing.depart(now, from, to, bytes), to, bytes);
}

TEST(Pricing, AMessageAloneTakesLatencyPlusBytesOverBandwidth) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{44'700'000}}) {
    Pricing pricing = plain();
    const auto size = static_cast<std::int64_t>(bytes);
    EXPECT_EQ(deliver(pricing, ns(100), a, b, bytes), ns(100 + 5000 + size));
    EXPECT_EQ(pricing.sent_by(a), ns(100 + size));
  }
}

TEST(Pricing, TheCardOfASenderServesOneMessageAfterTheOther) {
  Pricing pricing = plain();
  EXPECT_EQ(deliver(pricing, ns(0), a, b, 1000), ns(6000));
  EXPECT_EQ(deliver(pricing, ns(0), a, c, 1000), ns(7000));
  EXPECT_EQ(deliver(pricing, ns(0), a, b, 10), ns(7010));
  EXPECT_EQ(deliver(pricing, ns(50'000), a, b, 10), ns(55'010)) << "the card has been idle";
}

TEST(Pricing, TheCardOfAReceiverServesOneMessageAfterTheOther) {
  Pricing pricing = plain();
  const Passage of_a = pricing.depart(ns(0), a, c, 1000);
  const Passage of_b = pricing.depart(ns(0), b, c, 1000);
  EXPECT_EQ(of_a.first_byte, of_b.first_byte) << "two cards send at the same time";
  EXPECT_EQ(pricing.arrive(of_a, c, 1000), ns(6000));
  EXPECT_EQ(pricing.arrive(of_b, c, 1000), ns(7000));
}

TEST(Pricing, BothDirectionsOfACardAreIndependent) {
  Pricing pricing = plain();
  EXPECT_EQ(deliver(pricing, ns(0), a, b, 1000), ns(6000));
  EXPECT_EQ(deliver(pricing, ns(0), b, a, 1000), ns(6000));
}

TEST(Pricing, ASlowLinkHoldsUpItsOwnMessagesOnly) {
  Pricing pricing = plain();
  pricing.set_link(a, b, {.bandwidth = 1e8, .latency = microseconds(20)});
  EXPECT_EQ(deliver(pricing, ns(0), a, b, 1000), ns(20'000 + 10'000));
  EXPECT_EQ(deliver(pricing, ns(0), a, b, 1000), ns(20'000 + 20'000)) << "one after the other";
  EXPECT_EQ(deliver(pricing, ns(0), a, c, 1000), ns(3000 + 5000)) << "the card is not the link";
  EXPECT_EQ(deliver(pricing, ns(10'000), b, a, 1000), ns(16'000)) << "the way back is as before";
}

TEST(Pricing, ACardSlowerThanTheLinkDecides) {
  Pricing pricing({.link = link, .card_bandwidth = 5e8}, 1);
  EXPECT_EQ(deliver(pricing, ns(0), a, b, 1000), ns(5000 + 2000));
  EXPECT_EQ(deliver(pricing, ns(0), a, c, 1000), ns(5000 + 4000));
}

TEST(Pricing, ALinkThatBecomesFasterKeepsTheOrderOfItsMessages) {
  Pricing pricing = plain();
  pricing.set_link(a, b, {.bandwidth = 1e6, .latency = microseconds(1000)});
  const Passage slow = pricing.depart(ns(0), a, b, 1000);
  EXPECT_EQ(slow.last_byte, ns(2'000'000));
  pricing.set_link(a, b, link);
  const Passage fast = pricing.depart(ns(1000), a, b, 10);
  EXPECT_GE(fast.first_byte, slow.last_byte);
  EXPECT_EQ(pricing.arrive(slow, b, 1000), ns(2'000'000));
  EXPECT_EQ(pricing.arrive(fast, b, 10), ns(2'000'010));
}

TEST(Pricing, JitterStretchesLatencyWithinItsBounds) {
  constexpr std::uint64_t seed = 99;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Pricing pricing({.link = link, .jitter = 0.5}, seed);
  Duration sum{};
  constexpr int count = 1000;
  for (int i = 0; i < count; ++i) {
    const TimePoint start = ns(1'000'000L * i);
    const Duration taken = deliver(pricing, start, a, b, 0) - start;
    EXPECT_GE(taken, microseconds(5));
    EXPECT_LT(taken, nanoseconds(7500));
    sum += taken;
  }
  EXPECT_NEAR(to_seconds(sum) / count, 6.25e-6, 0.1e-6);
}

}  // namespace
}  // namespace syncopate::sim
