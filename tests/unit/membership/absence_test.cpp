// Goal:   time in which the coordinator did not run counts against no member: neither as silence,
//         nor as a step without progress, nor as absence while the job gathers. A member that has
//         really gone is still noticed, however often the coordinator pauses.
// Method: turns, heartbeats and reports with hand-made times that include jumps of the clock; the
//         times of decisions are worked out by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "membership/liveness.hpp"
#include "tests/unit/membership/memberships.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(AbsenceWatch, TellsAnAbsenceFromATurn) {
  struct Case {
    Duration since, absence;
  };
  AbsenceWatch watch(100ms);
  TimePoint now = start + 5s;
  EXPECT_EQ(watch.turn(now), 0s) << "the first turn";
  for (const Case& each : {Case{100ms, 0s}, Case{0s, 0s}, Case{1100ms, 0s}, Case{1101ms, 1101ms},
                           Case{50ms, 0s}, Case{1h, 1h}, Case{1h, 1h}, Case{100ms, 0s}}) {
    now += each.since;
    EXPECT_EQ(watch.turn(now), each.absence) << each.since.count();
  }
}

/// Runs turns without a message from `from` to `to`; none of them may lead to a decision.
void expect_quiet(Membership& membership, double from, double to) {
  for (double second = from; second < to; second += 0.1) {
    membership.begin_turn(at(second));
    EXPECT_THAT(membership.time_passed(at(second)), IsEmpty()) << second;
  }
}

void beat(Membership& membership, std::initializer_list<std::uint32_t> nodes, double second) {
  for (const std::uint32_t node : nodes) {
    membership.on_heartbeat(NodeId{node}, {}, at(second));
  }
}

TEST(Absence, AnHourIsHeldAgainstNobody) {
  Membership membership = gathered();
  membership.begin_turn(at(0.1));
  membership.begin_turn(at(3600));
  EXPECT_THAT(membership.time_passed(at(3600)), IsEmpty());
  beat(membership, {1, 2, 3}, 3600.2);
  membership.begin_turn(at(7200));
  EXPECT_THAT(membership.time_passed(at(7200)), IsEmpty()) << "again";
}

TEST(Absence, SilenceGoesOnToCountFromTheReturn) {
  Membership membership = gathered();
  membership.begin_turn(at(0.1));
  beat(membership, {1, 2, 3}, 0.2);
  expect_quiet(membership, 0.2, 5);
  expect_quiet(membership, 100, 102);
  beat(membership, {1, 2}, 102);
  expect_quiet(membership, 102, 104.9);
  membership.begin_turn(at(105.5));
  EXPECT_THAT(reason_of(membership.time_passed(at(105.5))),
              HasSubstr("worker 0 (pid 100 on host) no longer answers; last heard 10"));
}

TEST(Absence, AMemberThatIsGoneIsMissedInSpiteOfRepeatedPauses) {
  Membership membership = gathered();
  int turns = 0;
  Decisions decisions;
  for (double second = 0; decisions.empty() && turns < 1000; ++turns) {
    second += turns % 20 == 19 ? 30 : 0.1;  // a pause after every two seconds
    membership.begin_turn(at(second));
    beat(membership, {1, 2}, second);
    decisions = membership.time_passed(at(second));
  }
  EXPECT_THAT(reason_of(decisions), HasSubstr("worker 0 (pid 100 on host) no longer answers"));
  EXPECT_NEAR(turns, 100, 10) << "after 10 s of the coordinator's own time";
}

wire::Missing wait_for_rank_1(double waited) {
  wire::Missing missing;
  missing.add_ranks(1);
  missing.set_operation("allreduce");
  missing.set_waited_seconds(waited);
  missing.set_limit_seconds(60);
  return missing;
}

TEST(Absence, AStepIsNotTakenForAHangByHeartbeatsThatAreStillUnread) {
  Membership membership = gathered();
  membership.begin_turn(at(0));
  wire::Heartbeat computing;
  computing.set_computing(true);
  computing.set_step(7);
  computing.set_expected_seconds(0.1);
  membership.on_heartbeat(NodeId{1}, computing, at(1));
  membership.begin_turn(at(1));
  membership.begin_turn(at(301));
  const Decisions decisions = membership.missing(NodeId{3}, wait_for_rank_1(31), at(301));
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<ExtendWait>(decisions[0]));
}

TEST(Absence, NodesMayStillJoinAfterIt) {
  Membership membership = two_workers();
  membership.begin_turn(at(0));
  membership.joined(NodeId{1}, worker(1), at(1));
  membership.begin_turn(at(1));
  membership.begin_turn(at(500));
  EXPECT_THAT(membership.time_passed(at(500)), IsEmpty());
  for (const NodeId node : {NodeId{2}, NodeId{3}}) {
    membership.joined(node, node == NodeId{2} ? evaluator() : worker(0), at(501));
  }
  EXPECT_NE(membership.view(), nullptr);
}

}  // namespace
}  // namespace syncopate
