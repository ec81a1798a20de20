// Goal:   Membership extends a reported wait, or goes on without the workers that are missing where
//         the job allows it, or ends the job; it says why, by name.
// Method: heartbeats and reports with hand-made times go in; the decisions that come out are
//         compared.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/membership/memberships.hpp"

namespace syncopate {
namespace {

using testing::HasSubstr;

wire::Missing missing_at_a_synchronization(const std::vector<std::uint32_t>& ranks) {
  wire::Missing report;
  report.mutable_ranks()->Assign(ranks.begin(), ranks.end());
  report.set_operation("allgather");
  report.set_step(813);
  report.set_waited_seconds(60);
  report.set_usual_seconds(0.4);
  report.set_limit_seconds(60);
  report.set_wait(7);
  return report;
}

/// In the backward pass of a step that takes half a second.
wire::Heartbeat computing() {
  wire::Heartbeat heartbeat;
  heartbeat.set_phase("backward");
  heartbeat.set_step(812);
  heartbeat.set_computing(true);
  heartbeat.set_expected_seconds(0.5);
  return heartbeat;
}

TEST(MembershipWaits, AReportOfMissingRanksEndsTheJobWithTheWholeStory) {
  Membership membership = gathered();
  wire::Heartbeat heartbeat = computing();
  heartbeat.set_computing(false);
  membership.on_heartbeat(NodeId{1}, heartbeat, at(59));
  EXPECT_EQ(reason_of(membership.missing(NodeId{3}, missing_at_a_synchronization({1}), at(60.2))),
            "step 813, allgather: worker 0 (pid 100 on host) waited 60.0 s (usually 0.400 s) for "
            "worker 1 (pid 101 on host), last heard 1.2 s ago, in backward of step 812");
}

TEST(MembershipWaits, AWorkerThatHangsEndsTheJobWithTheWholeStory) {
  Membership membership = gathered();
  membership.on_heartbeat(NodeId{1}, computing(), at(10));
  membership.on_heartbeat(NodeId{1}, computing(), at(70));
  EXPECT_EQ(reason_of(membership.missing(NodeId{3}, missing_at_a_synchronization({1}), at(71.2))),
            "step 813, allgather: worker 0 (pid 100 on host) waited 60.0 s (usually 0.400 s) for "
            "worker 1 (pid 101 on host), last heard 1.2 s ago, in backward of step 812 for 61.2 s "
            "(0.5 s expected at the most)");
}

TEST(MembershipWaits, ExtendsAWaitForAWorkerThatComputes) {
  Membership membership = gathered();
  wire::Heartbeat heartbeat = computing();
  heartbeat.set_expected_seconds(500);
  membership.on_heartbeat(NodeId{1}, heartbeat, at(10));
  for (const double seconds : {70.0, 1000.0, 9900.0}) {
    const Decisions decisions =
        membership.missing(NodeId{3}, missing_at_a_synchronization({1}), at(seconds));
    ASSERT_EQ(decisions.size(), 1U);
    const auto& extension = std::get<ExtendWait>(decisions[0]);
    EXPECT_EQ(extension.node, NodeId{3});
    EXPECT_EQ(extension.wait, 7U);
    EXPECT_EQ(extension.more, std::chrono::seconds(30));
  }
}

TEST(MembershipWaits, GoesOnWithoutWorkersThatMissASynchronization) {
  Membership membership = sparing(all_but_first);
  const wire::Missing report = missing_at_a_synchronization({1, 2});
  const Decisions decisions = membership.missing(NodeId{1}, report, at(61));
  ASSERT_EQ(decisions.size(), 3U);
  EXPECT_EQ(std::get<DropWorker>(decisions[0]).member.rank, Rank{1});
  EXPECT_EQ(std::get<DropWorker>(decisions[1]).member.rank, Rank{2});
  EXPECT_THAT(std::get<DropWorker>(decisions[0]).reason,
              HasSubstr("worker 0 (pid 100 on host) waited"));
  EXPECT_EQ(std::get<ExtendWait>(decisions[2]).node, NodeId{1});
  const Decisions again = membership.missing(NodeId{1}, report, at(61));
  ASSERT_EQ(again.size(), 1U) << "they are gone";
  EXPECT_EQ(std::get<ExtendWait>(again[0]).node, NodeId{1});
}

TEST(MembershipWaits, EndsWhereTheLeadingWorkerMissesASynchronization) {
  Membership membership = sparing(all_but_first);
  EXPECT_THAT(
      reason_of(membership.missing(NodeId{2}, missing_at_a_synchronization({0, 2}), at(61))),
      HasSubstr("for worker 0"));
}

TEST(MembershipWaits, EndsWithThoseWhoAreMissingWhereWorkersDoNotMeetEachOther) {
  Membership membership = sparing();
  EXPECT_THAT(reason_of(membership.missing(NodeId{1}, missing_at_a_synchronization({2}), at(61))),
              HasSubstr("for worker 2"));
}

TEST(MembershipWaits, GoesOnWithoutOneThatHangsWhereAServerKeepsTheModel) {
  Membership membership = sparing();
  membership.on_heartbeat(NodeId{3}, computing(), at(1));
  membership.on_heartbeat(NodeId{3}, computing(), at(61));
  const Decisions decisions =
      membership.missing(NodeId{1}, missing_at_a_synchronization({1}), at(61));
  ASSERT_EQ(decisions.size(), 2U);
  EXPECT_EQ(std::get<DropWorker>(decisions[0]).member.rank, Rank{2});
  EXPECT_THAT(std::get<DropWorker>(decisions[0]).reason, HasSubstr("for worker 2"));
  EXPECT_EQ(std::get<ExtendWait>(decisions[1]).node, NodeId{1});
}

TEST(MembershipWaits, EndsWhereAServerDoesNotAnswer) {
  Membership membership = sparing();
  const std::string reason =
      reason_of(membership.missing(NodeId{1}, missing_at_a_synchronization({}), at(61)));
  EXPECT_THAT(reason, testing::EndsWith("waited 60.0 s (usually 0.400 s)"));
}

}  // namespace
}  // namespace syncopate
