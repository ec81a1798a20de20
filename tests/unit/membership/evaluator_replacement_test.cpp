// Goal:   as long as there will be snapshots, another evaluator can replace one that was lost; no
//         other node can.
// Method: nodes enquire and join memberships that have lost their evaluator; the test compares the
//         decisions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/membership/memberships.hpp"

namespace syncopate {
namespace {

using testing::HasSubstr;

std::string reason_of_refusal(const Decisions& decisions) {
  const auto* const refusal =
      decisions.size() == 1 ? std::get_if<RefuseJoin>(decisions.data()) : nullptr;
  return refusal == nullptr ? "no refusal" : refusal->abort.reason();
}

std::string reason_of_drop(const Decisions& decisions) {
  const auto* const drop =
      decisions.size() == 1 ? std::get_if<DropWorker>(decisions.data()) : nullptr;
  return drop == nullptr ? "no drop" : drop->reason;
}

wire::Enquire evaluator_enquiry() {
  wire::Enquire enquiry;
  enquiry.set_role(wire::ROLE_EVALUATOR);
  enquiry.set_host("host");
  return enquiry;
}

TEST(EvaluatorReplacement, AnotherEvaluatorTakesThePlaceOfOneThatWasDropped) {
  Membership membership = gathered();
  membership.arrived(NodeId{1}, 1);
  membership.arrived(NodeId{3}, 1);
  membership.lost(NodeId{2}, at(1));
  EXPECT_EQ(membership.sender(NodeId{4}), Sender::unknown);
  wire::Join join = evaluator();
  join.set_pid(200);
  join.set_address("over there");
  const Decisions decisions = membership.joined(NodeId{4}, join, at(2));
  ASSERT_EQ(decisions.size(), 1U);
  const auto& replacement = std::get<ReplaceEvaluator>(decisions[0]);
  EXPECT_EQ(replacement.member.node, NodeId{4});
  EXPECT_EQ(replacement.member.to_string(), "the evaluator (pid 200 on host)");
  EXPECT_EQ(replacement.member.address, "over there");
  EXPECT_EQ(replacement.view.number, 2U);
  EXPECT_EQ(replacement.view.members.size(), 3U);
  EXPECT_EQ(replacement.view.nodes(Role::evaluator), std::vector{NodeId{4}});
  EXPECT_EQ(membership.view()->nodes(Role::evaluator), std::vector{NodeId{4}});
  EXPECT_EQ(membership.sender(NodeId{4}), Sender::evaluator);
  EXPECT_EQ(membership.sender(NodeId{2}), Sender::gone);
  EXPECT_EQ(reason_of_drop(membership.lost(NodeId{4}, at(3))),
            "the evaluator (pid 200 on host) died; last heard 1.0 s ago, in start-up of step 0");
  EXPECT_EQ(membership.joined(NodeId{5}, evaluator(), at(4)).size(), 1U) << "as often as needed";
  EXPECT_EQ(membership.view()->number, 3U);
}

TEST(EvaluatorReplacement, AnEvaluatorThatCameLaterHoldsUpTheEndAsTheFirstWould) {
  Membership membership = gathered();
  membership.lost(NodeId{2}, at(1));
  membership.joined(NodeId{4}, evaluator(), at(2));
  membership.arrived(NodeId{1}, 1);
  EXPECT_EQ(membership.arrived(NodeId{3}, 1).size(), 1U) << "workers alone are awaited";
  membership.left(NodeId{1});
  EXPECT_TRUE(membership.left(NodeId{3}).empty());
  wire::Heartbeat heartbeat;
  for (double seconds = 5; seconds <= 60; seconds += 5) {
    membership.on_heartbeat(NodeId{4}, heartbeat, at(seconds));
    EXPECT_TRUE(membership.time_passed(at(seconds)).empty());
  }
  const Decisions done = membership.left(NodeId{4});
  ASSERT_EQ(done.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<JobDone>(done[0]));
}

TEST(EvaluatorReplacement, KeepsTheSlotOfALostEvaluatorForOneThatEnquires) {
  Membership membership = gathered();
  EXPECT_EQ(reason_of_refusal(membership.enquired(NodeId{4}, evaluator_enquiry())),
            "another evaluator (pid 0 on host) cannot join: the job has already started");
  membership.lost(NodeId{2}, at(1));
  const Decisions answer = membership.enquired(NodeId{5}, evaluator_enquiry());
  EXPECT_EQ(std::get<AnswerEnquiry>(answer.at(0)).index, 0U);
  EXPECT_THAT(reason_of_refusal(membership.joined(NodeId{6}, evaluator(), at(2))),
              HasSubstr("the job has already started"));
  EXPECT_EQ(membership.joined(NodeId{5}, evaluator(), at(2)).size(), 1U);
  EXPECT_THAT(reason_of_refusal(membership.joined(NodeId{7}, worker(0), at(2))),
              HasSubstr("worker 0 (pid 100 on host) cannot join: the job has already started"));
}

TEST(EvaluatorReplacement, RefusesAnEvaluatorThatComesTooLate) {
  const std::string late =
      "the evaluator (pid 100 on host) cannot join: training has ended, or is about to";
  Membership done = gathered();
  done.lost(NodeId{2}, at(1));
  done.left(NodeId{3});
  EXPECT_EQ(reason_of_refusal(done.joined(NodeId{4}, evaluator(), at(2))), late)
      << "worker 0 has left";
  Membership stopped = gathered();
  stopped.lost(NodeId{2}, at(1));
  stopped.end_requested(at(1));
  EXPECT_EQ(reason_of_refusal(stopped.joined(NodeId{4}, evaluator(), at(2))), late);
  Membership tested = gathered();
  tested.left(NodeId{2});
  EXPECT_THAT(reason_of_refusal(tested.joined(NodeId{4}, evaluator(), at(2))),
              HasSubstr("the job has already started"))
      << "the evaluator has done its work";
}

TEST(EvaluatorReplacement, AnEvaluatorIsWelcomeAsLongAsTheServerSendsSnapshots) {
  Membership membership(
      {.workers = 1, .servers = 1, .evaluators = 1, .snapshots_from = Role::server}, start);
  wire::Join server = worker(0);
  server.set_role(wire::ROLE_SERVER);
  membership.joined(NodeId{1}, worker(0), start);
  membership.joined(NodeId{2}, server, start);
  membership.joined(NodeId{3}, evaluator(), start);
  membership.lost(NodeId{3}, at(1));
  membership.left(NodeId{1});
  EXPECT_EQ(membership.joined(NodeId{4}, evaluator(), at(2)).size(), 1U);
  membership.lost(NodeId{4}, at(3));
  membership.left(NodeId{2});
  EXPECT_TRUE(membership.joined(NodeId{5}, evaluator(), at(4)).empty()) << "the job is done";
}

}  // namespace
}  // namespace syncopate
