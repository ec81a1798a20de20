// Goal:   a member is present from its join to its end, and counts as silent after many times the
//         usual pause between its heartbeats.
// Method: joins and heartbeats with hand-made times; the limits are worked out by hand.

#include "membership/liveness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr TimePoint start{};
constexpr NodeId one{1}, two{2};

/// Returns the liveness of two nodes that joined at the start. A node is silent after ten times its
/// usual pause, but at least 5 s.
Liveness two_nodes() {
  Liveness liveness({.floor = 5s, .factor = 10, .window = 4});
  liveness.joined(one, start);
  liveness.joined(two, start);
  return liveness;
}

wire::Heartbeat backward_of_step_3() {
  wire::Heartbeat heartbeat;
  heartbeat.set_phase("backward");
  heartbeat.set_step(3);
  return heartbeat;
}

TEST(Liveness, KnowsThePresentNodes) {
  Liveness liveness = two_nodes();
  EXPECT_TRUE(liveness.is_present(one));
  EXPECT_FALSE(liveness.is_present(NodeId{3}));
  liveness.gone(one, Liveness::Standing::left);
  EXPECT_FALSE(liveness.is_present(one));
  EXPECT_FALSE(liveness.was_dropped(one));
  EXPECT_TRUE(liveness.any_present());
  liveness.gone(two, Liveness::Standing::dropped);
  EXPECT_TRUE(liveness.was_dropped(two));
  EXPECT_FALSE(liveness.any_present());
}

TEST(Liveness, AllowsAFewSecondsBeforeTheUsualPauseIsKnown) {
  const Liveness liveness = two_nodes();
  EXPECT_THAT(liveness.silent(start + 5s), IsEmpty());
  EXPECT_THAT(liveness.silent(start + 5s + 1ns), ElementsAre(one, two));
}

TEST(Liveness, FollowsTheUsualPauseOfEachNode) {
  Liveness liveness = two_nodes();
  for (int second = 2; second <= 8; second += 2) {
    liveness.on_heartbeat(one, {}, start + second * 1s);
  }
  liveness.on_heartbeat(two, {}, start + 100ms);
  EXPECT_THAT(liveness.silent(start + 6s), ElementsAre(two)) << "after the floor";
  EXPECT_THAT(liveness.silent(start + 28s), ElementsAre(two)) << "one: ten times 2 s after 8 s";
  EXPECT_THAT(liveness.silent(start + 28s + 1ns), ElementsAre(one, two));
}

TEST(Liveness, SilenceDoesNotGrowWhileTheListenerIsAbsent) {
  Liveness liveness = two_nodes();
  liveness.on_heartbeat(two, {}, start + 2s);
  liveness.forgive(10s, start + 11s);
  EXPECT_EQ(liveness.last_sign(one, start + 11s), "last heard 1.0 s ago, in start-up of step 0");
  EXPECT_EQ(liveness.last_sign(two, start + 11s), "last heard 0.0 s ago, in start-up of step 0")
      << "not in the future";
  EXPECT_THAT(liveness.silent(start + 15s), IsEmpty());
  EXPECT_THAT(liveness.silent(start + 15s + 1ns), ElementsAre(one)) << "4 s after the return";
  EXPECT_THAT(liveness.silent(start + 31s), ElementsAre(one))
      << "ten times 2 s since the return: the absence is no usual pause";
}

TEST(Liveness, DescribesTheLastSign) {
  Liveness liveness = two_nodes();
  liveness.on_heartbeat(one, backward_of_step_3(), start + 1s);
  liveness.on_heartbeat(NodeId{3}, backward_of_step_3(), start + 1s);
  EXPECT_EQ(liveness.last_sign(one, start + 2500ms), "last heard 1.5 s ago, in backward of step 3");
  EXPECT_EQ(liveness.last_sign(two, start + 1s), "last heard 1.0 s ago, in start-up of step 0");
  EXPECT_EQ(liveness.last_sign(NodeId{3}, start + 1s), "never heard");
}

}  // namespace
}  // namespace syncopate
