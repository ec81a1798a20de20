// Goal:   each message goes to the right receive, and losses are reported after messages.
// Method: arrivals, receives and losses in chosen orders, without network or time; the test
//         compares the outcome of each receive.

#include "sim/inbox.hpp"

#include <gtest/gtest.h>

#include "base/errors.hpp"

namespace syncopate::sim {
namespace {

constexpr NodeId a{1};
constexpr NodeId b{2};
constexpr Tag tag{7};

Message message(NodeId from, std::initializer_list<int> values) {
  Message made{from, tag, {}};
  for (const int value : values) {
    made.payload.push_back(static_cast<std::byte>(value));
  }
  return made;
}

int first_byte(const Receive& receive) {
  return std::to_integer<int>(receive.message.payload.at(0));
}

/// Posts a receive from b, one from any node and one from a, in this order.
struct ThreeReceives {
  explicit ThreeReceives(Inbox& inbox) {
    inbox.post(of_b);
    inbox.post(any);
    inbox.post(of_a);
  }

  Receive of_b{b, tag, {}};
  Receive any{{}, tag, {}};
  Receive of_a{a, tag, {}};
};

TEST(Inbox, MessagesWaitForReceivesInTheirOrder) {
  Inbox inbox;
  inbox.arrive(message(a, {1}));
  inbox.arrive(message(b, {2}));
  inbox.arrive(message(a, {3}));
  ThreeReceives posted(inbox);
  EXPECT_EQ(first_byte(posted.of_b), 2);
  EXPECT_EQ(first_byte(posted.any), 1);
  EXPECT_EQ(first_byte(posted.of_a), 3);
}

TEST(Inbox, ReceivesWaitForMessagesInTheirOrder) {
  Inbox inbox;
  ThreeReceives posted(inbox);
  inbox.arrive(message(a, {1}));
  EXPECT_TRUE(posted.any.completion.done());
  EXPECT_FALSE(posted.of_a.completion.done());
  inbox.arrive(message(a, {2}));
  inbox.arrive(message(b, {3}));
  EXPECT_EQ(first_byte(posted.any), 1);
  EXPECT_EQ(first_byte(posted.of_a), 2);
  EXPECT_EQ(first_byte(posted.of_b), 3);
}

TEST(Inbox, AWithdrawnReceiveTakesNothing) {
  Inbox inbox;
  Receive first{a, tag, {}};
  Receive second{a, tag, {}};
  inbox.post(first);
  inbox.post(second);
  inbox.withdraw(first);
  inbox.arrive(message(a, {1}));
  EXPECT_FALSE(first.completion.done());
  EXPECT_EQ(first_byte(second), 1);
}

TEST(Inbox, ABufferIsFilledOrFoundOfAnotherSize) {
  Inbox inbox;
  std::vector<std::byte> two(2);
  Receive fits{a, tag, two};
  Receive fails{a, tag, two};
  inbox.post(fits);
  inbox.post(fails);
  inbox.arrive(message(a, {5, 6}));
  inbox.arrive(message(a, {7, 8, 9}));
  EXPECT_NO_THROW(fits.completion.check());
  EXPECT_THROW(fails.completion.check(), ProtocolError);
  EXPECT_EQ(two, message(a, {5, 6}).payload);
}

TEST(Inbox, LossesComeAfterMessagesAndOnceToReceivesFromAnyone) {
  Inbox inbox;
  inbox.arrive(message(a, {1}));
  inbox.lose(a, "a is gone");
  Receive message_first{a, tag, {}};
  Receive then_loss{a, tag, {}};
  Receive any_loss{{}, tag, {}};
  Receive any_waits{{}, tag, {}};
  Receive other_tag{{}, Tag{8}, {}};
  for (Receive* receive : {&message_first, &then_loss, &any_loss, &any_waits, &other_tag}) {
    inbox.post(*receive);
  }
  EXPECT_EQ(first_byte(message_first), 1);
  EXPECT_THROW(then_loss.completion.check(), PeerLost);
  EXPECT_THROW(any_loss.completion.check(), PeerLost);
  EXPECT_FALSE(any_waits.completion.done());
  EXPECT_FALSE(other_tag.completion.done()) << "once, whatever the tag";
  inbox.lose(b, "b is gone");
  EXPECT_NE(any_waits.completion.done(), other_tag.completion.done());
}

TEST(Inbox, ALossEndsTheReceivesThatOnlyThePeerCouldServe) {
  Inbox inbox;
  Receive of_a{a, tag, {}};
  Receive of_b{b, tag, {}};
  inbox.post(of_a);
  inbox.post(of_b);
  inbox.lose(a, "a is gone");
  EXPECT_TRUE(of_a.completion.done());
  EXPECT_FALSE(of_b.completion.done());
}

TEST(Inbox, CancelEndsReceivesAndDropsMessages) {
  Inbox inbox;
  Receive of_b{b, tag, {}};
  inbox.post(of_b);
  inbox.arrive(message(a, {1}));
  inbox.cancel(std::make_exception_ptr(Cancelled("over")));
  EXPECT_THROW(of_b.completion.check(), Cancelled);
  Receive of_a{a, tag, {}};
  inbox.post(of_a);
  EXPECT_FALSE(of_a.completion.done());
}

}  // namespace
}  // namespace syncopate::sim
