// Goal:   Membership gathers a job, notices whoever dies, falls silent or contradicts the others, and
//         says so once, by name.
// Method: events with hand-made times go in; the decisions that come out are compared.

#include "cluster/membership.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate {
namespace {

using testing::HasSubstr;

constexpr TimePoint start{};

TimePoint at(double seconds) {
  return start + from_seconds(seconds);
}

wire::Join worker(std::uint32_t index, const std::string& agreement = "ssgd") {
  wire::Join join;
  join.set_role(wire::ROLE_WORKER);
  join.set_index(index);
  join.set_host("host");
  join.set_pid(100 + index);
  join.set_agreement(agreement);
  return join;
}

wire::Join evaluator() {
  wire::Join join = worker(0);
  join.set_role(wire::ROLE_EVALUATOR);
  return join;
}

Membership two_workers() {
  return Membership({.workers = 2, .evaluators = 1}, start);
}

Membership gathered() {
  Membership membership = two_workers();
  membership.joined(NodeId{1}, worker(1), start);
  membership.joined(NodeId{2}, evaluator(), start);
  membership.joined(NodeId{3}, worker(0), start);
  return membership;
}

std::string reason_of(const Decisions& decisions) {
  if (decisions.size() != 1 || !std::holds_alternative<EndJob>(decisions[0])) {
    return "no end of the job";
  }
  return std::get<EndJob>(decisions[0]).abort.reason();
}

TEST(Membership, InstallsTheViewWhenTheLastOneJoins) {
  Membership membership = two_workers();
  EXPECT_TRUE(membership.joined(NodeId{1}, worker(1), start).empty());
  EXPECT_TRUE(membership.joined(NodeId{2}, evaluator(), start).empty());
  EXPECT_EQ(membership.view(), nullptr);
  const Decisions decisions = membership.joined(NodeId{3}, worker(0), start);
  ASSERT_EQ(decisions.size(), 1U);
  const View& view = std::get<InstallView>(decisions[0]).view;
  ASSERT_EQ(view.members.size(), 3U);
  EXPECT_EQ(view.members[0].node, NodeId{3});
  EXPECT_EQ(view.members[0].rank, Rank{0});
  EXPECT_EQ(view.members[1].node, NodeId{1});
  EXPECT_EQ(view.members[1].rank, Rank{1});
  EXPECT_EQ(view.members[2].role, Role::evaluator);
  EXPECT_EQ(view.workers().size(), 2U);
}

TEST(Membership, RefusesATakenPlace) {
  Membership membership = two_workers();
  membership.joined(NodeId{1}, worker(1), start);
  const std::string reason = reason_of(membership.joined(NodeId{2}, worker(1), start));
  EXPECT_EQ(reason,
            "worker 1 (pid 101 on host) cannot join: its place is taken by pid 101 on host");
}

TEST(Membership, RefusesAnotherAgreementAndQuotesBoth) {
  Membership membership = two_workers();
  membership.joined(NodeId{1}, worker(1, "lenet5"), start);
  EXPECT_EQ(
      reason_of(membership.joined(NodeId{2}, worker(0, "mlp"), start)),
      "worker 0 (pid 100 on host) cannot join: it runs \"mlp\", but worker 1 runs \"lenet5\"");
}

TEST(Membership, RefusesMoreWorkersThanExpectedAndLateOnes) {
  Membership membership = two_workers();
  EXPECT_THAT(reason_of(membership.joined(NodeId{1}, worker(2), start)), HasSubstr("room for 2"));
  Membership full = gathered();
  EXPECT_THAT(reason_of(full.joined(NodeId{4}, worker(1), start)), HasSubstr("already started"));
}

TEST(Membership, NamesWhoIsAbsentWhenGatheringTakesTooLong) {
  Membership membership = two_workers();
  membership.joined(NodeId{1}, worker(1), at(59));
  EXPECT_TRUE(membership.time_passed(at(60)).empty());
  EXPECT_EQ(reason_of(membership.time_passed(at(60.1))),
            "after 60 s there is still no sign of worker 0, the evaluator");
}

TEST(Membership, NamesTheDeadAndWhereTheyWere) {
  Membership membership = gathered();
  wire::Heartbeat heartbeat;
  heartbeat.set_phase("backward");
  heartbeat.set_step(812);
  membership.heard(NodeId{1}, heartbeat, at(2));
  EXPECT_EQ(reason_of(membership.lost(NodeId{1}, at(3.5))),
            "worker 1 (pid 101 on host) died; last heard 1.5 s ago, in backward of step 812");
}

TEST(Membership, SaysNothingMoreAfterTheEnd) {
  Membership membership = gathered();
  EXPECT_EQ(membership.lost(NodeId{1}, at(1)).size(), 1U);
  EXPECT_TRUE(membership.lost(NodeId{3}, at(1)).empty());
  EXPECT_TRUE(membership.time_passed(at(1000)).empty());
  EXPECT_TRUE(membership.left(NodeId{3}).empty());
}

TEST(Membership, EndsForSilenceLongerThanTheAdaptiveLimit) {
  Membership membership = gathered();
  for (const NodeId node : {NodeId{1}, NodeId{2}, NodeId{3}}) {
    membership.heard(node, {}, at(1));  // one second between heartbeats allows forty
  }
  EXPECT_TRUE(membership.time_passed(at(40.9)).empty());
  EXPECT_THAT(reason_of(membership.time_passed(at(41.1))), HasSubstr("no longer answers"));
}

TEST(Membership, IgnoresLossAndSilenceOfThoseWhoLeft) {
  Membership membership = gathered();
  EXPECT_TRUE(membership.left(NodeId{1}).empty());
  EXPECT_TRUE(membership.lost(NodeId{1}, at(1)).empty());
  for (const NodeId node : {NodeId{2}, NodeId{3}}) {
    membership.heard(node, {}, at(100));
  }
  EXPECT_TRUE(membership.time_passed(at(101)).empty());
}

TEST(Membership, IsDoneWhenTheLastOneLeaves) {
  Membership membership = gathered();
  EXPECT_TRUE(membership.left(NodeId{1}).empty());
  EXPECT_TRUE(membership.left(NodeId{2}).empty());
  const Decisions decisions = membership.left(NodeId{3});
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<JobDone>(decisions[0]));
}

TEST(Membership, IgnoresTheLossOfANodeThatNeverJoined) {
  Membership membership = gathered();
  EXPECT_TRUE(membership.lost(NodeId{9}, at(1)).empty());
}

TEST(Membership, ReleasesABarrierWhenEveryWorkerHasArrivedOnce) {
  Membership membership = gathered();
  EXPECT_TRUE(membership.arrived(NodeId{1}, 1).empty());
  EXPECT_TRUE(membership.arrived(NodeId{1}, 1).empty());
  const Decisions decisions = membership.arrived(NodeId{3}, 1);
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(std::get<ReleaseBarrier>(decisions[0]).barrier, 1U);
}

TEST(Membership, AReportOfMissingRanksEndsTheJobWithTheWholeStory) {
  Membership membership = gathered();
  wire::Heartbeat heartbeat;
  heartbeat.set_phase("backward");
  heartbeat.set_step(812);
  membership.heard(NodeId{1}, heartbeat, at(10));
  wire::Missing report;
  report.add_ranks(1);
  report.set_operation("allgather");
  report.set_step(813);
  report.set_waited_seconds(41);
  report.set_usual_seconds(0.4);
  EXPECT_EQ(reason_of(membership.missing(NodeId{3}, report, at(11.2))),
            "step 813, allgather: worker 0 (pid 100 on host) waited 41.0 s (usually 0.400 s) for "
            "worker 1 (pid 101 on host), last heard 1.2 s ago, in backward of step 812");
}

}  // namespace
}  // namespace syncopate
