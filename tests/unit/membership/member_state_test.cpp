// Goal:   a member's state follows the coordinator's messages.
// Method: one message of each kind, and the values that change.

#include "membership/member_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.hpp"

namespace syncopate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

wire::FromCoordinator stop(bool complete) {
  wire::FromCoordinator message;
  message.mutable_stop()->set_reason("enough");
  message.mutable_stop()->set_complete(complete);
  return message;
}

wire::FromCoordinator dropped(std::uint32_t rank) {
  wire::FromCoordinator message;
  message.mutable_dropped()->set_rank(rank);
  return message;
}

wire::FromCoordinator released(std::uint64_t barrier, bool restarts) {
  wire::FromCoordinator message;
  message.mutable_released()->set_barrier(barrier);
  message.mutable_released()->set_restarts(restarts);
  message.mutable_released()->mutable_pacer()->set_round_time(7);
  return message;
}

wire::FromCoordinator share(double value) {
  wire::FromCoordinator message;
  message.mutable_speed_share()->set_share(value);
  return message;
}

TEST(MemberState, IsEmptyAtFirst) {
  MemberState state;
  EXPECT_FALSE(state.view());
  EXPECT_FALSE(state.stop_reason());
  EXPECT_FALSE(state.is_complete());
  EXPECT_FALSE(state.speed_share());
  EXPECT_EQ(state.released(), 0U);
  EXPECT_FALSE(state.ended());
  EXPECT_THAT(state.take_dropped(), IsEmpty());
}

TEST(MemberState, ALostEvaluatorIsNoLostWorker) {
  MemberState state;
  wire::FromCoordinator message = dropped(0);
  message.mutable_dropped()->set_node(5);
  message.mutable_dropped()->set_role(wire::ROLE_EVALUATOR);
  state.apply(message);
  EXPECT_THAT(state.lost(), IsEmpty());
  EXPECT_THAT(state.take_dropped(), IsEmpty());
  ASSERT_TRUE(state.dropped_evaluator());
  EXPECT_EQ(state.dropped_evaluator()->node(), 5U);
}

TEST(MemberState, KnowsTheEvaluatorThatCameInThePlaceOfALostOne) {
  MemberState state;
  EXPECT_FALSE(state.evaluator());
  wire::FromCoordinator view;
  wire::Member& first = *view.mutable_view()->add_members();
  first.set_node(5);
  first.set_role(wire::ROLE_EVALUATOR);
  state.apply(view);
  EXPECT_EQ(state.evaluator(), NodeId{5});
  wire::FromCoordinator loss = dropped(0);
  loss.mutable_dropped()->set_node(5);
  loss.mutable_dropped()->set_role(wire::ROLE_EVALUATOR);
  state.apply(loss);
  EXPECT_FALSE(state.evaluator());
  wire::FromCoordinator replacement;
  *replacement.mutable_replaced() = first;
  replacement.mutable_replaced()->set_node(7);
  replacement.mutable_replaced()->set_address("there");
  state.apply(replacement);
  EXPECT_EQ(state.evaluator(), NodeId{7});
  EXPECT_FALSE(state.dropped_evaluator());
  ASSERT_EQ(state.evaluators().size(), 2U);
  EXPECT_EQ(state.evaluators()[0].node, NodeId{5});
  EXPECT_EQ(state.evaluators()[1].address, "there");
  EXPECT_EQ(state.view()->nodes(Role::evaluator), std::vector{NodeId{5}});
}

TEST(MemberState, StaysCompleteOnceItIs) {
  MemberState state;
  state.apply(stop(true));
  state.apply(stop(false));
  EXPECT_EQ(state.stop_reason(), "enough");
  EXPECT_TRUE(state.is_complete());
}

TEST(MemberState, ListsEachDroppedWorkerOnceToItsTaker) {
  MemberState state;
  state.apply(dropped(2));
  EXPECT_EQ(state.take_dropped().size(), 1U);
  state.apply(dropped(0));
  EXPECT_EQ(state.take_dropped().front().rank(), 0U);
  EXPECT_THAT(state.take_dropped(), IsEmpty());
  EXPECT_THAT(state.lost(), ElementsAre(Rank{2}, Rank{0}));
}

TEST(MemberState, ForgetsItsSpeedShareAtARestartAlone) {
  MemberState state;
  state.apply(share(0.25));
  state.apply(released(1, false));
  EXPECT_EQ(state.speed_share(), 0.25);
  EXPECT_EQ(state.pacer().round_time(), 0);
  state.apply(released(2, true));
  EXPECT_FALSE(state.speed_share());
  EXPECT_EQ(state.released(), 2U);
  EXPECT_EQ(state.pacer().round_time(), 7);
}

TEST(MemberState, KeepsTheErrorOfAnAbort) {
  MemberState state;
  wire::FromCoordinator message;
  message.mutable_abort()->set_kind(wire::Abort::KIND_CONFIG);
  message.mutable_abort()->set_reason("no such network");
  state.apply(message);
  state.end(std::make_exception_ptr(Error("later")));
  EXPECT_THROW(std::rethrow_exception(state.ended()), ConfigError);
}

TEST(MemberState, RefusesWhatNoMemberExpects) {
  MemberState state;
  wire::FromCoordinator job;
  job.mutable_job();
  EXPECT_THROW(state.apply(job), ProtocolError);
  EXPECT_THROW(state.apply(wire::FromCoordinator()), ProtocolError);
}

}  // namespace
}  // namespace syncopate
