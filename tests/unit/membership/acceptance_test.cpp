// Goal:   the coordinator accepts a control message only from senders that may send it, and only in
//         the phases in which they may; an error names an impossible value.
// Method: the whole table of kinds, senders and phases, as literal text; messages with one bad
//         value each.

#include "membership/acceptance.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

namespace syncopate {
namespace {

using testing::HasSubstr;
using Body = wire::ToCoordinator;

constexpr std::array senders{Sender::unknown,      Sender::gone,   Sender::leader,   Sender::worker,
                             Sender::first_server, Sender::server, Sender::evaluator};

/// Returns one character for each sender, in the order above: 'x' if the message is accepted.
std::string row(Body::BodyCase kind, JobPhase phase) {
  std::string accepted;
  for (const Sender sender : senders) {
    accepted += is_accepted(kind, sender, phase) ? 'x' : '.';
  }
  return accepted;
}

struct Expected {
  Body::BodyCase kind;
  std::string gathering;
  std::string started;
};

TEST(Acceptance, IsByKindSenderAndPhase) {
  const std::vector<Expected> table{
      {Body::kEnquire, "x......", "x......"},    {Body::kJoin, "x......", "x......"},
      {Body::kHeartbeat, "..xxxxx", "..xxxxx"},  {Body::kAbort, "x.xxxxx", "x.xxxxx"},
      {Body::kArrived, ".......", "..xxxxx"},    {Body::kMissing, ".......", "..xxxxx"},
      {Body::kStepped, ".......", "..xx..."},    {Body::kComplete, ".......", "..xxx.."},
      {Body::kEvaluation, ".......", "......x"}, {Body::kCheckpoint, ".......", "..x.x.."},
      {Body::kRejected, ".......", "....xx."},   {Body::kLeave, ".......", "..xxxxx"},
  };
  for (const Expected& expected : table) {
    SCOPED_TRACE(name_of(expected.kind));
    EXPECT_EQ(row(expected.kind, JobPhase::gathering), expected.gathering);
    EXPECT_EQ(row(expected.kind, JobPhase::started), expected.started);
  }
}

TEST(Acceptance, HasARowForEveryKindThatThereIs) {
  for (int number = 1; number <= 13; ++number) {
    const auto kind = static_cast<Body::BodyCase>(number);
    EXPECT_EQ(name_of(kind) == "message of an unknown kind", number == 11) << number;
  }
  EXPECT_FALSE(is_accepted(Body::BODY_NOT_SET, Sender::leader, JobPhase::started));
}

TEST(Acceptance, NamesDurationsThatNoClockHolds) {
  wire::ToCoordinator message;
  message.mutable_missing()->set_limit_seconds(60);
  EXPECT_EQ(objection_to(message), std::nullopt);
  message.mutable_missing()->set_waited_seconds(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(objection_to(message), "expected 0 to 4e+09 s, found nan s");
  message.mutable_stepped()->set_seconds(1e300);
  EXPECT_EQ(objection_to(message), "expected 0 to 4e+09 s, found 1e+300 s");
  message.mutable_join()->set_step_budget(-1);
  EXPECT_EQ(objection_to(message), "expected 0 to 4e+09 s, found -1 s");
  message.mutable_evaluation()->set_training_seconds(1e300);
  EXPECT_EQ(objection_to(message), "expected 0 to 4e+09 s, found 1e+300 s");
}

TEST(Acceptance, NamesResultsAndStatusesThatCannotBe) {
  wire::ToCoordinator message;
  message.mutable_evaluation()->set_accuracy(1);
  EXPECT_EQ(objection_to(message), std::nullopt);
  message.mutable_evaluation()->set_accuracy(1.5);
  EXPECT_EQ(objection_to(message), "expected an accuracy from 0 to 1, found 1.5");
  message.mutable_evaluation()->set_accuracy(0.5);
  message.mutable_evaluation()->set_epoch(std::numeric_limits<double>::infinity());
  EXPECT_EQ(objection_to(message), "expected an epoch from 0 up, found inf");
  message.mutable_heartbeat()->mutable_staleness()->set_sum(-1);
  EXPECT_THAT(objection_to(message).value_or(""), HasSubstr("no such histogram"));
  message.mutable_leave()->mutable_last()->mutable_queue_length()->set_sum(-1);
  EXPECT_THAT(objection_to(message).value_or(""), HasSubstr("no such histogram"));
}

}  // namespace
}  // namespace syncopate
