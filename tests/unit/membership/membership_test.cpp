// Goal:   Membership gathers a job, notices a member that dies, becomes silent or contradicts the
//         others, and reports it once, by name.
// Method: the test passes in events with hand-made times and compares the decisions.

#include "membership/membership.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/membership/memberships.hpp"

namespace syncopate {
namespace {

using testing::HasSubstr;

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

/// Returns the request of a worker that lets the coordinator choose its slot.
wire::Enquire enquiry() {
  wire::Enquire enquiry;
  enquiry.set_role(wire::ROLE_WORKER);
  enquiry.set_host("far");
  enquiry.set_pid(9);
  return enquiry;
}

std::optional<std::uint32_t> slot_of(const Decisions& decisions) {
  if (decisions.size() != 1 || !std::holds_alternative<AnswerEnquiry>(decisions[0])) {
    return std::nullopt;
  }
  return std::get<AnswerEnquiry>(decisions[0]).index;
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

TEST(Membership, ShowsNoEscapeSequencesOfOthers) {
  Membership membership = two_workers();
  wire::Join join = worker(1);
  join.set_host("\x1b[2Jhost\n");
  join.set_device("gpu\x07");
  membership.joined(NodeId{1}, join, start);
  EXPECT_EQ(refusal_of(membership.joined(NodeId{2}, join, start)),
            "worker 1 (pid 101 on ?[2Jhost ) cannot join: its slot is taken by pid 101 on "
            "?[2Jhost ");
  membership.joined(NodeId{3}, evaluator(), start);
  const Decisions decisions = membership.joined(NodeId{4}, worker(0), start);
  const View& view = std::get<InstallView>(decisions.at(0)).view;
  EXPECT_EQ(view.members[1].host, "?[2Jhost ");
  EXPECT_EQ(view.members[1].device, "gpu?");
  wire::Abort abort = failure(wire::Abort::KIND_DATA);
  abort.set_reason("broken\x1b]0;title\x07");
  EXPECT_THAT(reason_of(membership.failed(NodeId{1}, abort)), HasSubstr("broken?]0;title?"));
}

TEST(Membership, RefusesATakenPlaceAndGathersOn) {
  Membership membership = two_workers();
  membership.joined(NodeId{1}, worker(1), start);
  const Decisions decisions = membership.joined(NodeId{2}, worker(1), start);
  EXPECT_EQ(refusal_of(decisions),
            "worker 1 (pid 101 on host) cannot join: its slot is taken by pid 101 on host");
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

TEST(Membership, KeepsASlotForThoseThatRequestOne) {
  Membership membership = two_workers();
  EXPECT_EQ(slot_of(membership.enquired(NodeId{1}, enquiry())), 0U);
  EXPECT_EQ(slot_of(membership.enquired(NodeId{2}, enquiry())), 1U);
  EXPECT_EQ(slot_of(membership.enquired(NodeId{2}, enquiry())), 1U)
      << "a second request is no second claim";
  EXPECT_EQ(refusal_of(membership.enquired(NodeId{3}, enquiry())),
            "another worker (pid 9 on far) cannot join: this job has room for 2 workers, and every "
            "slot is taken");
  EXPECT_THAT(refusal_of(membership.joined(NodeId{4}, worker(0), start)),
              HasSubstr("taken by pid 9 on far"));
  EXPECT_TRUE(membership.joined(NodeId{1}, worker(0), start).empty());
}

TEST(Membership, GivesThePlaceOfANodeThatDiedBeforeItJoinedToTheNext) {
  Membership membership = two_workers();
  membership.enquired(NodeId{1}, enquiry());
  EXPECT_TRUE(membership.lost(NodeId{1}, start).empty());
  EXPECT_EQ(slot_of(membership.enquired(NodeId{2}, enquiry())), 0U);
}

TEST(Membership, AnswersAnEnquiryForACertainSlotOrForNone) {
  Membership membership = two_workers();
  wire::Enquire certain = enquiry();
  certain.set_index(1);
  EXPECT_EQ(slot_of(membership.enquired(NodeId{1}, certain)), 1U);
  EXPECT_THAT(refusal_of(membership.enquired(NodeId{2}, certain)), HasSubstr("its slot is taken"));
  EXPECT_EQ(slot_of(membership.enquired(NodeId{3}, {})), 0U) << "just what the job is";
  EXPECT_EQ(slot_of(membership.enquired(NodeId{4}, enquiry())), 0U);
}

TEST(Membership, TellsNowAndThenWhoIsAbsent) {
  Membership membership({.workers = 1, .servers = 2, .remind_every = std::chrono::seconds(5)},
                        start);
  EXPECT_TRUE(membership.time_passed(at(4.9)).empty());
  membership.enquired(NodeId{1}, enquiry());
  const Decisions decisions = membership.time_passed(at(5));
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(std::get<ReportAbsent>(decisions[0]).names,
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

TEST(Membership, NamesTheFirstOfManyThatAreAbsent) {
  Membership membership({.workers = 1, .servers = 500, .evaluators = 1}, start);
  EXPECT_EQ(reason_of(membership.time_passed(at(60.1))),
            "after 60 s there is still no sign of worker 0, server 0, server 1, server 2, "
            "server 3, server 4, server 5, server 6, server 7, server 8, server 9, server 10, "
            "server 11, server 12, server 13, server 14, 486 more");
}

TEST(Membership, NamesTheDeadAndWhereTheyWere) {
  Membership membership = gathered();
  wire::Heartbeat heartbeat;
  heartbeat.set_phase("backward");
  heartbeat.set_step(812);
  membership.on_heartbeat(NodeId{1}, heartbeat, at(2));
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
    membership.on_heartbeat(node, {}, at(1));  // 1 s between heartbeats allows 40 s of silence
  }
  EXPECT_TRUE(membership.time_passed(at(40.9)).empty());
  EXPECT_THAT(reason_of(membership.time_passed(at(41.1))), HasSubstr("no longer answers"));
}

TEST(Membership, IgnoresLossAndSilenceOfThoseWhoLeft) {
  Membership membership = gathered();
  EXPECT_TRUE(membership.left(NodeId{1}).empty());
  EXPECT_TRUE(membership.lost(NodeId{1}, at(1)).empty());
  for (const NodeId node : {NodeId{2}, NodeId{3}}) {
    membership.on_heartbeat(node, {}, at(100));
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
  membership.on_heartbeat(NodeId{3}, {}, at(9));
  membership.on_heartbeat(NodeId{4}, {}, at(9));
  EXPECT_THAT(drop_of(membership.time_passed(at(10.1))),
              HasSubstr("worker 1 (pid 101 on host) no longer answers"));
}

TEST(Membership, EndsForFailuresThatConcernAllWorkers) {
  Membership membership = sparing();
  const Decisions decisions = membership.failed(NodeId{1}, failure(wire::Abort::KIND_NOT_FINITE));
  EXPECT_THAT(reason_of(decisions), HasSubstr("something broke"));
  EXPECT_EQ(std::get<EndJob>(decisions[0]).abort.kind(), wire::Abort::KIND_NOT_FINITE);
}

TEST(Membership, AWorkersOwnConfigurationOrDataErrorCostsItsPlaceAlone) {
  for (const auto kind : {wire::Abort::KIND_CONFIG, wire::Abort::KIND_DATA}) {
    Membership membership = sparing();
    EXPECT_EQ(drop_of(membership.failed(NodeId{2}, failure(kind))),
              "worker 1 (pid 101 on host): something broke");
    EXPECT_EQ(drop_of(membership.failed(NodeId{1}, failure(kind))),
              "worker 0 (pid 100 on host): something broke");
    const Decisions last = membership.failed(NodeId{3}, failure(kind));
    EXPECT_EQ(reason_of(last), "worker 2 (pid 102 on host): something broke");
    EXPECT_EQ(std::get<EndJob>(last.at(0)).abort.kind(), kind) << "nobody is left to go on";
  }
}

TEST(Membership, AnErrorOfAWorkerThatASchemeCannotSpareEndsTheJobWithItsName) {
  Membership membership = gathered();
  membership.arrived(NodeId{1}, 1);
  membership.arrived(NodeId{3}, 1);
  EXPECT_EQ(reason_of(membership.failed(NodeId{1}, failure(wire::Abort::KIND_DATA))),
            "worker 1 (pid 101 on host): something broke");
}

TEST(Membership, DoesNotGoOnWithoutTheWorkerThatLeads) {
  Membership membership = sparing(all_but_first);
  EXPECT_TRUE(std::holds_alternative<DropWorker>(membership.lost(NodeId{3}, at(1)).at(0)));
  EXPECT_THAT(reason_of(membership.lost(NodeId{1}, at(1))), HasSubstr("worker 0"));
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

TEST(Membership, EndsWithTheLastWorker) {
  Membership membership = sparing();
  membership.lost(NodeId{1}, at(1));
  membership.lost(NodeId{2}, at(1));
  EXPECT_THAT(reason_of(membership.lost(NodeId{3}, at(1))), HasSubstr("worker 2"));
}

TEST(Membership, EveryJobGoesOnWithoutItsEvaluator) {
  for (const auto& make : {+[] { return gathered(); }, +[] { return sparing(); }}) {
    Membership membership = make();
    const NodeId node = membership.view()->find(Role::evaluator, Rank{0})->node;
    EXPECT_EQ(drop_of(membership.lost(node, at(1))),
              "the evaluator (pid 100 on host) died; last heard 1.0 s ago, in start-up of step 0");
    EXPECT_FALSE(membership.is_present(node));
    EXPECT_TRUE(membership.lost(node, at(2)).empty());
  }
  Membership failing = gathered();
  EXPECT_EQ(drop_of(failing.failed(NodeId{2}, failure(wire::Abort::KIND_FAILURE))),
            "the evaluator (pid 100 on host): something broke");
  Membership silent = gathered();
  silent.on_heartbeat(NodeId{1}, {}, at(9));
  silent.on_heartbeat(NodeId{3}, {}, at(9));
  EXPECT_THAT(drop_of(silent.time_passed(at(10.1))), HasSubstr("the evaluator (pid 100 on host)"));
}

TEST(Membership, TheEvaluatorIsMissedWhileTheJobGathers) {
  Membership membership = two_workers();
  membership.joined(NodeId{2}, evaluator(), start);
  EXPECT_THAT(reason_of(membership.lost(NodeId{2}, at(1))), HasSubstr("the evaluator"));
}

TEST(Membership, WaitsForTheLastEvaluationsWhileTheEvaluatorMakesProgress) {
  Membership membership = gathered();
  membership.left(NodeId{1});
  const auto beat = [&](std::uint64_t progress, double seconds) {
    wire::Heartbeat heartbeat;
    heartbeat.set_progress(progress);
    membership.on_heartbeat(NodeId{2}, heartbeat, at(seconds));
    membership.on_heartbeat(NodeId{3}, {}, at(seconds));
    return membership.time_passed(at(seconds));
  };
  for (double seconds = 5; seconds <= 300; seconds += 5) {
    EXPECT_TRUE(beat(1, seconds).empty()) << "a worker is still there";
  }
  membership.left(NodeId{3});
  for (double seconds = 305; seconds <= 350; seconds += 5) {
    EXPECT_TRUE(beat(1, seconds).empty());
  }
  for (double seconds = 355; seconds <= 415; seconds += 5) {
    EXPECT_TRUE(beat(2, seconds).empty()) << seconds;
  }
  const Decisions decisions = beat(2, 420);
  EXPECT_EQ(drop_of(decisions),
            "the evaluator (pid 100 on host) has made no progress for 60 s after the last worker "
            "left; last heard 0.0 s ago, in start-up of step 0 for 420.0 s");
  ASSERT_EQ(decisions.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<JobDone>(decisions[1]));
}

TEST(Membership, KnowsWhoSends) {
  Membership membership = sparing();
  EXPECT_EQ(membership.sender(NodeId{1}), Sender::leader);
  EXPECT_EQ(membership.sender(NodeId{2}), Sender::worker);
  EXPECT_EQ(membership.sender(NodeId{4}), Sender::evaluator);
  EXPECT_EQ(membership.sender(NodeId{9}), Sender::unknown);
  membership.lost(NodeId{2}, at(1));
  membership.left(NodeId{4});
  membership.joined(NodeId{9}, worker(1), at(1));
  for (const NodeId gone : {NodeId{2}, NodeId{4}, NodeId{9}}) {
    EXPECT_EQ(membership.sender(gone), Sender::gone);
  }
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
  EXPECT_TRUE(membership.arrived(NodeId{9}, 1).empty()) << "an unknown node";
  EXPECT_TRUE(membership.arrived(NodeId{1}, 1).empty());
  EXPECT_EQ(membership.arrived(NodeId{3}, 1).size(), 1U);
  EXPECT_TRUE(membership.arrived(NodeId{2}, 1).empty());
  EXPECT_TRUE(membership.left(NodeId{1}).empty());
  EXPECT_TRUE(membership.left(NodeId{3}).empty()) << "no barrier is released twice";
}

}  // namespace
}  // namespace syncopate
