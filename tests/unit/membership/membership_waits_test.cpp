// Goal:   Membership extends a reported wait, or goes on without the missing workers if the job
//         allows it, or ends the job; the reason names the workers.
// Method: the test passes in heartbeats and reports with hand-made times and compares the
//         decisions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/membership/memberships.hpp"

namespace syncopate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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

/// Returns a heartbeat in the backward pass of a step that takes half a second.
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
            "worker 1 (pid 101 on host), last heard 1.2 s ago, in backward of step 812 for 60.2 s");
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

/// Passes in a heartbeat each second up to `until`.
void beat(Membership& membership, NodeId node, const wire::Heartbeat& heartbeat, int until) {
  for (int second = 1; second <= until; ++second) {
    membership.on_heartbeat(node, heartbeat, at(second));
  }
}

wire::Heartbeat standing_by() {
  wire::Heartbeat heartbeat;
  heartbeat.set_standing_by(true);
  return heartbeat;
}

TEST(MembershipWaits, FindsAHangThatNobodyReports) {
  Membership membership = sparing();
  beat(membership, NodeId{1}, standing_by(), 60);
  beat(membership, NodeId{2}, computing(), 60);
  beat(membership, NodeId{3}, standing_by(), 60);
  beat(membership, NodeId{4}, standing_by(), 60);
  EXPECT_TRUE(membership.time_passed(at(60.9)).empty());
  const Decisions decisions = membership.time_passed(at(61));
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(std::get<DropWorker>(decisions[0]).reason,
            "worker 1 (pid 101 on host) hangs: last heard 1.0 s ago, in backward of step 812 for "
            "60.0 s (0.5 s expected at the most)");
}

TEST(MembershipWaits, GoesOnWithoutAnEvaluatorThatHangs) {
  Membership membership = sparing();
  for (const NodeId node : {NodeId{1}, NodeId{2}, NodeId{3}}) {
    beat(membership, node, standing_by(), 60);
  }
  wire::Heartbeat evaluating;
  evaluating.set_phase("evaluation");
  beat(membership, NodeId{4}, evaluating, 60);
  const Decisions decisions = membership.time_passed(at(60));
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(std::get<DropWorker>(decisions[0]).reason,
            "the evaluator (pid 100 on host) hangs: last heard 0.0 s ago, in evaluation of step 0 "
            "for 60.0 s");
}

TEST(MembershipWaits, NamesTheServerThatDoesNotAnswer) {
  Membership membership({.workers = 1, .servers = 1, .evaluators = 0}, start);
  wire::Join join = worker(0);
  membership.joined(NodeId{1}, join, start);
  join.set_role(wire::ROLE_SERVER);
  membership.joined(NodeId{2}, join, start);
  wire::Missing report = missing_at_a_synchronization({});
  report.add_servers(0);
  report.set_waited_seconds(120);
  EXPECT_THAT(reason_of(membership.missing(NodeId{1}, report, at(120))),
              HasSubstr(" for server 0 (pid 100 on host), last heard 120.0 s ago"));
}

TEST(MembershipWaits, NamesTheMemberOfAWaitThatEndedAtItsDeadline) {
  Membership membership = gathered();
  wire::Abort abort;
  abort.set_kind(wire::Abort::KIND_TIMED_OUT);
  abort.set_reason("a message was not taken before its deadline");
  abort.set_node(1);
  EXPECT_EQ(
      reason_of(membership.waited_in_vain(NodeId{3}, abort, at(61))),
      "worker 0 (pid 100 on host): a message was not taken before its deadline; it waited for "
      "worker 1 (pid 101 on host), last heard 61.0 s ago, in start-up of step 0 for 61.0 s");
}

/// Returns the members that hang according to these decisions.
std::vector<std::uint32_t> hung_by(const Decisions& decisions) {
  std::vector<std::uint32_t> nodes;
  for (const Decision& decision : decisions) {
    if (const auto* const end = std::get_if<EndJob>(&decision)) {
      nodes.insert(nodes.end(), end->abort.hung().begin(), end->abort.hung().end());
    } else if (const auto* const drop = std::get_if<DropWorker>(&decision); drop && drop->hangs) {
      nodes.push_back(drop->member.node.value);
    }
  }
  return nodes;
}

TEST(MembershipWaits, TellsMembersThatHangThatTheyDo) {
  for (const auto& options : {all_spared, Membership::Options{.workers = 3}}) {
    Membership membership = sparing(options);
    for (const std::uint32_t other : {1, 3, 4}) {
      beat(membership, NodeId{other}, standing_by(), 60);
    }
    beat(membership, NodeId{2}, computing(), 60);
    EXPECT_THAT(hung_by(membership.time_passed(at(61))), ElementsAre(2));
  }
  for (const auto& options : {all_but_first, Membership::Options{.workers = 3}}) {
    Membership membership = sparing(options);
    const wire::Missing report = missing_at_a_synchronization({1, 2});
    EXPECT_THAT(hung_by(membership.missing(NodeId{1}, report, at(61))), ElementsAre(2, 3));
  }
  Membership silent = sparing();
  for (const std::uint32_t other : {1, 3, 4}) {
    beat(silent, NodeId{other}, standing_by(), 61);
  }
  EXPECT_THAT(hung_by(silent.time_passed(at(61))), ElementsAre(2)) << "its heartbeats may hang";
}

TEST(MembershipWaits, TellsNobodyElseThatItHangs) {
  wire::Abort mistake;
  mistake.set_kind(wire::Abort::KIND_DATA);
  mistake.set_reason("it cannot be handled");
  wire::Abort in_vain;
  in_vain.set_kind(wire::Abort::KIND_TIMED_OUT);
  in_vain.set_reason("a message was not taken before its deadline");
  in_vain.set_node(2);
  for (const auto& options : {all_spared, Membership::Options{.workers = 3}}) {
    EXPECT_THAT(hung_by(sparing(options).failed(NodeId{2}, mistake)), IsEmpty());
    EXPECT_THAT(hung_by(sparing(options).failed(NodeId{4}, mistake)), IsEmpty());
    EXPECT_THAT(hung_by(sparing(options).lost(NodeId{2}, at(1))), IsEmpty());
    EXPECT_THAT(hung_by(sparing(options).waited_in_vain(NodeId{1}, in_vain, at(1))), IsEmpty());
    EXPECT_THAT(hung_by(sparing(options).waited_in_vain(NodeId{1}, in_vain, at(61))),
                ElementsAre(2));
  }
}

TEST(MembershipWaits, ARequestEndsAJobThatGathers) {
  Membership membership = two_workers();
  membership.joined(NodeId{1}, worker(1), start);
  EXPECT_EQ(reason_of(membership.end_requested(at(1))),
            "the job was ended while it waited for worker 0, the evaluator");
}

TEST(MembershipWaits, ARequestEndsAJobInWhichNothingGoesOn) {
  Membership membership = sparing();
  beat(membership, NodeId{1}, standing_by(), 3);
  beat(membership, NodeId{2}, computing(), 3);
  beat(membership, NodeId{3}, standing_by(), 3);
  beat(membership, NodeId{4}, standing_by(), 3);
  membership.end_requested(at(3));
  EXPECT_TRUE(membership.time_passed(at(4.4)).empty()) << "it may end by itself";
  beat(membership, NodeId{2}, computing(), 12);
  EXPECT_THAT(
      reason_of(membership.time_passed(at(12))),
      HasSubstr("it does not come to its end: worker 1 (pid 101 on host), last heard 0.0 s ago, in "
                "backward of step 812 for 11.0 s"));
}

}  // namespace
}  // namespace syncopate
