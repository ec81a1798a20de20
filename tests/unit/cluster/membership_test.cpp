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
  join.set_machine("machine");
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

std::string refusal_of(const Decisions& decisions) {
  if (decisions.size() != 1 || !std::holds_alternative<RefuseJoin>(decisions[0])) {
    return "no refusal";
  }
  return std::get<RefuseJoin>(decisions[0]).abort.reason();
}

std::string drop_of(const Decisions& decisions) {
  if (decisions.empty() || !std::holds_alternative<DropWorker>(decisions[0])) {
    return "no worker dropped";
  }
  return std::get<DropWorker>(decisions[0]).reason;
}

/// A worker that leaves its place to the coordinator.
wire::Enquire enquiry() {
  wire::Enquire enquiry;
  enquiry.set_role(wire::ROLE_WORKER);
  enquiry.set_host("far");
  enquiry.set_pid(9);
  return enquiry;
}

std::optional<std::uint32_t> place_of(const Decisions& decisions) {
  if (decisions.size() != 1 || !std::holds_alternative<AnswerEnquiry>(decisions[0])) {
    return std::nullopt;
  }
  return std::get<AnswerEnquiry>(decisions[0]).index;
}

constexpr Membership::Options all_spared{.workers = 3, .spares_workers = true};
/// Of workers that meet each other.
constexpr Membership::Options all_but_first{
    .workers = 3, .spares_workers = true, .spares_first = false, .spares_missing = true};

/// Workers 0, 1 and 2 as nodes 1, 2 and 3, the evaluator as 4; all have passed the first barrier.
Membership sparing(const Membership::Options& options = all_spared) {
  Membership membership(options, start);
  for (std::uint32_t index = 0; index < 3; ++index) {
    membership.joined(NodeId{index + 1}, worker(index), start);
  }
  membership.joined(NodeId{4}, evaluator(), start);
  for (std::uint32_t node = 1; node <= 3; ++node) {
    membership.arrived(NodeId{node}, 1);
  }
  return membership;
}

wire::Abort failure(wire::Abort::Kind kind) {
  wire::Abort abort;
  abort.set_kind(kind);
  abort.set_reason("something broke");
  return abort;
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
  EXPECT_EQ(view.members[0].machine, "machine");
  EXPECT_EQ(view.members[1].node, NodeId{1});
  EXPECT_EQ(view.members[1].rank, Rank{1});
  EXPECT_EQ(view.members[2].role, Role::evaluator);
  EXPECT_EQ(view.workers().size(), 2U);
}

TEST(Membership, RefusesATakenPlaceAndGathersOn) {
  Membership membership = two_workers();
  membership.joined(NodeId{1}, worker(1), start);
  const Decisions decisions = membership.joined(NodeId{2}, worker(1), start);
  EXPECT_EQ(refusal_of(decisions),
            "worker 1 (pid 101 on host) cannot join: its place is taken by pid 101 on host");
  EXPECT_EQ(std::get<RefuseJoin>(decisions[0]).node, NodeId{2});
  EXPECT_EQ(std::get<RefuseJoin>(decisions[0]).abort.kind(), wire::Abort::KIND_CONFIG);
  membership.joined(NodeId{3}, evaluator(), start);
  EXPECT_EQ(membership.joined(NodeId{4}, worker(0), start).size(), 1U);
  ASSERT_NE(membership.view(), nullptr);
  EXPECT_EQ(membership.view()->find(NodeId{2}), nullptr);
}

TEST(Membership, RefusesANodeOnceAndForgetsIt) {
  Membership membership = two_workers();
  membership.joined(NodeId{1}, worker(1), start);
  membership.joined(NodeId{2}, worker(1), start);
  EXPECT_TRUE(membership.joined(NodeId{2}, worker(0), start).empty());
  EXPECT_TRUE(membership.failed(NodeId{2}, {}).empty());
  EXPECT_TRUE(membership.lost(NodeId{2}, start).empty());
}

TEST(Membership, RefusesAnotherAgreementAndQuotesBoth) {
  Membership membership = two_workers();
  membership.joined(NodeId{1}, worker(1, "lenet5"), start);
  EXPECT_EQ(
      refusal_of(membership.joined(NodeId{2}, worker(0, "mlp"), start)),
      "worker 0 (pid 100 on host) cannot join: it runs \"mlp\", but worker 1 runs \"lenet5\"");
}

TEST(Membership, HoldsTheFirstToTheAgreementOfTheJob) {
  Membership membership({.workers = 2, .agreement = "lenet5"}, start);
  EXPECT_EQ(refusal_of(membership.joined(NodeId{1}, worker(0, "mlp"), start)),
            "worker 0 (pid 100 on host) cannot join: it runs \"mlp\", but this job is \"lenet5\"");
  EXPECT_TRUE(membership.joined(NodeId{2}, worker(0, "lenet5"), start).empty());
}

TEST(Membership, RefusesMoreWorkersThanExpectedAndLateOnes) {
  Membership membership = two_workers();
  EXPECT_THAT(refusal_of(membership.joined(NodeId{1}, worker(2), start)), HasSubstr("room for 2"));
  Membership full = gathered();
  EXPECT_THAT(refusal_of(full.joined(NodeId{4}, worker(1), start)), HasSubstr("already started"));
  EXPECT_THAT(refusal_of(full.enquired(NodeId{5}, enquiry())), HasSubstr("already started"));
}

TEST(Membership, RefusesAStrangerThatNobodyUnderstands) {
  Membership membership = two_workers();
  wire::Abort nonsense;
  nonsense.set_reason("expected a body");
  EXPECT_EQ(refusal_of(membership.failed(NodeId{7}, nonsense)), "node 7: expected a body");
  EXPECT_EQ(membership.joined(NodeId{1}, worker(0), start).size(), 0U);
}

TEST(Membership, KeepsAPlaceForThoseWhoAskForOne) {
  Membership membership = two_workers();
  EXPECT_EQ(place_of(membership.enquired(NodeId{1}, enquiry())), 0U);
  EXPECT_EQ(place_of(membership.enquired(NodeId{2}, enquiry())), 1U);
  EXPECT_EQ(place_of(membership.enquired(NodeId{2}, enquiry())), 1U) << "asking twice is no claim";
  EXPECT_EQ(refusal_of(membership.enquired(NodeId{3}, enquiry())),
            "another worker (pid 9 on far) cannot join: this job has room for 2 workers, and every "
            "place is taken");
  EXPECT_THAT(refusal_of(membership.joined(NodeId{4}, worker(0), start)),
              HasSubstr("taken by pid 9 on far"));
  EXPECT_TRUE(membership.joined(NodeId{1}, worker(0), start).empty());
}

TEST(Membership, GivesThePlaceOfANodeThatDiedBeforeItJoinedToTheNext) {
  Membership membership = two_workers();
  membership.enquired(NodeId{1}, enquiry());
  EXPECT_TRUE(membership.lost(NodeId{1}, start).empty());
  EXPECT_EQ(place_of(membership.enquired(NodeId{2}, enquiry())), 0U);
}

TEST(Membership, AnswersAnEnquiryForACertainPlaceOrForNone) {
  Membership membership = two_workers();
  wire::Enquire certain = enquiry();
  certain.set_index(1);
  EXPECT_EQ(place_of(membership.enquired(NodeId{1}, certain)), 1U);
  EXPECT_THAT(refusal_of(membership.enquired(NodeId{2}, certain)), HasSubstr("its place is taken"));
  EXPECT_EQ(place_of(membership.enquired(NodeId{3}, {})), 0U) << "just what the job is";
  EXPECT_EQ(place_of(membership.enquired(NodeId{4}, enquiry())), 0U);
}

TEST(Membership, TellsNowAndThenWhoIsAbsent) {
  Membership membership({.workers = 1, .servers = 2, .remind_every = std::chrono::seconds(5)},
                        start);
  EXPECT_TRUE(membership.time_passed(at(4.9)).empty());
  membership.enquired(NodeId{1}, enquiry());
  const Decisions decisions = membership.time_passed(at(5));
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(std::get<NameAbsent>(decisions[0]).names,
            "worker 0, server 0, server 1, the evaluator");
  EXPECT_TRUE(membership.time_passed(at(9.9)).empty());
}

TEST(Membership, ListsWorkersThenServersThenTheEvaluator) {
  Membership membership({.workers = 1, .servers = 1}, start);
  wire::Join server = worker(0);
  server.set_role(wire::ROLE_SERVER);
  membership.joined(NodeId{1}, evaluator(), start);
  membership.joined(NodeId{2}, server, start);
  membership.joined(NodeId{3}, worker(0), start);
  ASSERT_NE(membership.view(), nullptr);
  std::vector<Role> roles;
  for (const Member& member : membership.view()->members) {
    roles.push_back(member.role);
  }
  EXPECT_EQ(roles, (std::vector{Role::worker, Role::server, Role::evaluator}));
  EXPECT_EQ(reason_of(membership.lost(NodeId{2}, at(1))),
            "server 0 (pid 100 on host) died; last heard 1.0 s ago, in start-up of step 0");
}

TEST(Membership, NamesWhoIsAbsentWhenGatheringTakesTooLong) {
  Membership membership = two_workers();
  membership.joined(NodeId{1}, worker(1), at(59));
  EXPECT_EQ(reason_of(membership.time_passed(at(60))), "no end of the job");
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

TEST(Membership, AReportOfMissingRanksEndsTheJobWithTheWholeStory) {
  Membership membership = gathered();
  wire::Heartbeat heartbeat = computing();
  heartbeat.set_computing(false);
  membership.heard(NodeId{1}, heartbeat, at(59));
  EXPECT_EQ(reason_of(membership.missing(NodeId{3}, missing_at_a_synchronization({1}), at(60.2))),
            "step 813, allgather: worker 0 (pid 100 on host) waited 60.0 s (usually 0.400 s) for "
            "worker 1 (pid 101 on host), last heard 1.2 s ago, in backward of step 812");
}

TEST(Membership, AWorkerThatHangsEndsTheJobWithTheWholeStory) {
  Membership membership = gathered();
  membership.heard(NodeId{1}, computing(), at(10));
  membership.heard(NodeId{1}, computing(), at(70));
  EXPECT_EQ(reason_of(membership.missing(NodeId{3}, missing_at_a_synchronization({1}), at(71.2))),
            "step 813, allgather: worker 0 (pid 100 on host) waited 60.0 s (usually 0.400 s) for "
            "worker 1 (pid 101 on host), last heard 1.2 s ago, in backward of step 812 for 61.2 s "
            "(0.5 s expected at the most)");
}

TEST(Membership, ExtendsAWaitForAWorkerThatComputes) {
  Membership membership = gathered();
  wire::Heartbeat heartbeat = computing();
  heartbeat.set_expected_seconds(500);
  membership.heard(NodeId{1}, heartbeat, at(10));
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

TEST(Membership, GoesOnWithoutAWorkerThatDied) {
  Membership membership = sparing();
  const Decisions decisions = membership.lost(NodeId{2}, at(1.5));
  ASSERT_EQ(decisions.size(), 1U);
  const auto& drop = std::get<DropWorker>(decisions[0]);
  EXPECT_EQ(drop.member.rank, Rank{1});
  EXPECT_EQ(drop.reason,
            "worker 1 (pid 101 on host) died; last heard 1.5 s ago, in start-up of step 0");
  EXPECT_FALSE(membership.is_present(NodeId{2}));
  EXPECT_TRUE(membership.lost(NodeId{2}, at(2)).empty()) << "nobody is dropped twice";
  EXPECT_TRUE(membership.left(NodeId{2}).empty());
}

TEST(Membership, GoesOnWithoutAWorkerThatFailedOrIsSilent) {
  Membership membership = sparing();
  EXPECT_EQ(drop_of(membership.failed(NodeId{1}, failure(wire::Abort::KIND_FAILURE))),
            "worker 0 (pid 100 on host): something broke");
  membership.heard(NodeId{3}, {}, at(9));
  membership.heard(NodeId{4}, {}, at(9));
  EXPECT_THAT(drop_of(membership.time_passed(at(10.1))),
              HasSubstr("worker 1 (pid 101 on host) no longer answers"));
}

TEST(Membership, EndsForFailuresThatConcernAllWorkers) {
  for (const auto kind :
       {wire::Abort::KIND_CONFIG, wire::Abort::KIND_DATA, wire::Abort::KIND_NOT_FINITE}) {
    Membership membership = sparing();
    const Decisions decisions = membership.failed(NodeId{1}, failure(kind));
    EXPECT_THAT(reason_of(decisions), HasSubstr("something broke"));
    EXPECT_EQ(std::get<EndJob>(decisions[0]).abort.kind(), kind);
  }
}

TEST(Membership, DoesNotGoOnWithoutTheWorkerThatLeads) {
  Membership membership = sparing(all_but_first);
  EXPECT_TRUE(std::holds_alternative<DropWorker>(membership.lost(NodeId{3}, at(1)).at(0)));
  EXPECT_THAT(reason_of(membership.lost(NodeId{1}, at(1))), HasSubstr("worker 0"));
}

TEST(Membership, GoesOnWithoutThoseWhoDoNotComeToAMeeting) {
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

TEST(Membership, EndsWhereTheWorkerThatLeadsDoesNotComeToAMeeting) {
  Membership membership = sparing(all_but_first);
  EXPECT_THAT(
      reason_of(membership.missing(NodeId{2}, missing_at_a_synchronization({0, 2}), at(61))),
      HasSubstr("for worker 0"));
}

TEST(Membership, EndsWithThoseWhoAreMissingWhereWorkersDoNotMeetEachOther) {
  Membership membership = sparing();
  EXPECT_THAT(reason_of(membership.missing(NodeId{1}, missing_at_a_synchronization({2}), at(61))),
              HasSubstr("for worker 2"));
}

TEST(Membership, GoesOnWithoutOneThatHangsWhereAServerKeepsTheModel) {
  Membership membership = sparing();
  membership.heard(NodeId{3}, computing(), at(1));
  membership.heard(NodeId{3}, computing(), at(61));
  const Decisions decisions =
      membership.missing(NodeId{1}, missing_at_a_synchronization({1}), at(61));
  ASSERT_EQ(decisions.size(), 2U);
  EXPECT_EQ(std::get<DropWorker>(decisions[0]).member.rank, Rank{2});
  EXPECT_THAT(std::get<DropWorker>(decisions[0]).reason, HasSubstr("for worker 2"));
  EXPECT_EQ(std::get<ExtendWait>(decisions[1]).node, NodeId{1});
}

TEST(Membership, EndsWhereAServerDoesNotAnswer) {
  Membership membership = sparing();
  const std::string reason =
      reason_of(membership.missing(NodeId{1}, missing_at_a_synchronization({}), at(61)));
  EXPECT_THAT(reason, testing::EndsWith("waited 60.0 s (usually 0.400 s)"));
}

TEST(Membership, SparesNobodyUnlessAskedTo) {
  Membership membership = gathered();
  membership.arrived(NodeId{1}, 1);
  membership.arrived(NodeId{3}, 1);
  EXPECT_THAT(reason_of(membership.lost(NodeId{1}, at(1))), HasSubstr("died"));
}

TEST(Membership, SparesNobodyBeforeTheFirstBarrier) {
  Membership membership({.workers = 2, .spares_workers = true}, start);
  membership.joined(NodeId{1}, worker(0), start);
  membership.joined(NodeId{2}, worker(1), start);
  membership.joined(NodeId{3}, evaluator(), start);
  EXPECT_THAT(reason_of(membership.lost(NodeId{1}, at(1))), HasSubstr("died"));
}

TEST(Membership, EndsWithTheLastWorkerAndWithTheEvaluator) {
  Membership membership = sparing();
  membership.lost(NodeId{1}, at(1));
  membership.lost(NodeId{2}, at(1));
  EXPECT_THAT(reason_of(membership.lost(NodeId{3}, at(1))), HasSubstr("worker 2"));
  Membership other = sparing();
  EXPECT_THAT(reason_of(other.lost(NodeId{4}, at(1))), HasSubstr("the evaluator"));
}

TEST(Membership, DropsTheLastWorkerAtWorkWhenOthersAreDone) {
  Membership membership = sparing();
  membership.left(NodeId{1});
  membership.lost(NodeId{2}, at(1));
  EXPECT_THAT(drop_of(membership.lost(NodeId{3}, at(1))), HasSubstr("worker 2"));
  const Decisions decisions = membership.left(NodeId{4});
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<JobDone>(decisions[0]));
}

TEST(Membership, ADroppedWorkerHoldsUpNeitherABarrierNorTheEnd) {
  Membership membership = sparing();
  membership.arrived(NodeId{1}, 2);
  membership.arrived(NodeId{3}, 2);
  const Decisions released = membership.lost(NodeId{2}, at(1));
  ASSERT_EQ(released.size(), 2U);
  EXPECT_EQ(std::get<ReleaseBarrier>(released[1]).barrier, 2U);
  membership.left(NodeId{1});
  membership.left(NodeId{4});
  const Decisions done = membership.lost(NodeId{3}, at(2));
  ASSERT_EQ(done.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<DropWorker>(done[0]));
  EXPECT_TRUE(std::holds_alternative<JobDone>(done[1]));
}

TEST(Membership, OnlyWorkersAreAwaitedAtABarrier) {
  Membership membership = gathered();
  EXPECT_TRUE(membership.arrived(NodeId{2}, 1).empty()) << "the evaluator";
  EXPECT_TRUE(membership.arrived(NodeId{9}, 1).empty()) << "a stranger";
  EXPECT_TRUE(membership.arrived(NodeId{1}, 1).empty());
  EXPECT_EQ(membership.arrived(NodeId{3}, 1).size(), 1U);
  EXPECT_TRUE(membership.arrived(NodeId{2}, 1).empty());
  EXPECT_TRUE(membership.left(NodeId{1}).empty());
  EXPECT_TRUE(membership.left(NodeId{3}).empty()) << "no barrier is released twice";
}

}  // namespace
}  // namespace syncopate
