// Goal:   the mailbox stops reading from a peer whose messages no receive takes, but never from a
//         peer that a receive waits for, and serves receives in the promised order.
// Method: the test puts messages into the mailbox as the io thread does, without sockets, and
//         compares `may_read` and `resume` step by step.

#include "transport/mail/mailbox.hpp"

#include <gmock/gmock.h>

#include <future>
#include <thread>

#include "base/errors.hpp"
#include "tests/contract/payload.hpp"
#include "tests/contract/tcp_cluster.hpp"

namespace syncopate::contract {
namespace {

constexpr NodeId one{1};
constexpr NodeId two{2};
constexpr Tag data{100};
constexpr Tag other{101};

struct MailboxOfOneNode : testing::Test {
  /// Lets a whole message arrive in pieces of `piece` bytes.
  void arrive(NodeId from, Tag tag, const Bytes& payload, std::size_t piece = 1000) {
    mail::Arrival arrival = mailbox.begin(from, tag, payload.size());
    do {
      const auto place = mailbox.borrow(arrival);
      const std::size_t count = std::min(piece, arrival.missing());
      if (!place.empty()) {
        std::copy_n(payload.begin() + static_cast<std::ptrdiff_t>(arrival.have), count,
                    place.begin());
      }
      mailbox.give_back(arrival, count);
    } while (arrival.missing() > 0);
  }

  /// Lets more bytes arrive from `peer` than the mailbox keeps without a receive.
  void overfill(NodeId peer) {
    arrive(peer, other, pattern(2000, 1));
    EXPECT_FALSE(mailbox.may_read(peer));
    EXPECT_THAT(resumed, testing::IsEmpty());
  }

  std::vector<NodeId> resumed;
  std::promise<void> any_resumed;
  mail::Mailbox mailbox{1000, [this](NodeId peer) {
                          resumed.push_back(peer);
                          if (resumed.size() == 1) {
                            any_resumed.set_value();
                          }
                        }};
};

TEST_F(MailboxOfOneNode, APeerWithTooMuchUnclaimedIsHeldBackUntilItIsTaken) {
  EXPECT_TRUE(mailbox.may_read(one));
  overfill(one);
  EXPECT_TRUE(mailbox.may_read(two)) << "others are not held back with it";
  EXPECT_EQ(mailbox.try_receive(one, other, far_away())->payload, pattern(2000, 1));
  EXPECT_THAT(resumed, testing::ElementsAre(one));
  EXPECT_TRUE(mailbox.may_read(one));
}

TEST_F(MailboxOfOneNode, EmptyMessagesWeighSomething) {
  for (int number = 0; number < 100; ++number) {
    arrive(one, other, {});
  }
  EXPECT_FALSE(mailbox.may_read(one));
}

TEST_F(MailboxOfOneNode, AReceiveOfThePeerLetsItGoOn) {
  overfill(one);
  overfill(two);
  Bytes into(10);
  {
    const auto receive = mailbox.start_receive(one, data, into);
    EXPECT_THAT(resumed, testing::ElementsAre(one));
    arrive(one, other, pattern(2000, 2));
    EXPECT_TRUE(mailbox.may_read(one)) << "the awaited message may stand behind others";
    EXPECT_FALSE(mailbox.may_read(two));
  }
  EXPECT_FALSE(mailbox.may_read(one)) << "the receive was withdrawn";
}

TEST_F(MailboxOfOneNode, AReceiveFromAnyoneLetsEverybodyGoOn) {
  overfill(one);
  overfill(two);
  std::thread receiver(
      [&] { EXPECT_EQ(mailbox.try_receive(std::nullopt, data, far_away())->from, two); });
  any_resumed.get_future().wait();
  arrive(two, data, {});
  receiver.join();
  EXPECT_THAT(resumed, testing::ElementsAre(one, two));
}

TEST_F(MailboxOfOneNode, CancelLetsEverybodyGoOnAndDropsWhatComes) {
  overfill(one);
  mailbox.cancel(std::make_exception_ptr(Cancelled("enough")));
  EXPECT_THAT(resumed, testing::ElementsAre(one));
  arrive(one, other, pattern(2000, 2));
  EXPECT_TRUE(mailbox.may_read(one));
}

TEST_F(MailboxOfOneNode, AReceiveThatBeginsWhileItsMessageArrivesTakesThatMessage) {
  mail::Arrival arrival = mailbox.begin(one, data, 4);
  Bytes into(4);
  const auto receive = mailbox.start_receive(one, data, into);
  const Bytes sent = pattern(4, 1);
  std::copy(sent.begin(), sent.end(), mailbox.borrow(arrival).begin());
  mailbox.give_back(arrival, 4);
  arrive(one, data, pattern(4, 2));
  receive->wait(far_away());
  EXPECT_EQ(into, pattern(4, 1));
  EXPECT_EQ(mailbox.try_receive(one, data, far_away())->payload, pattern(4, 2));
}

TEST_F(MailboxOfOneNode, APostedReceiveIsWrittenToInPlace) {
  Bytes into(4);
  const auto receive = mailbox.start_receive(one, data, into);
  mail::Arrival arrival = mailbox.begin(one, data, 4);
  EXPECT_EQ(mailbox.borrow(arrival).data(), into.data());
  mailbox.give_back(arrival, 1);
  EXPECT_EQ(mailbox.borrow(arrival).data(), into.data() + 1);
  mailbox.give_back(arrival, 3);
  receive->wait(far_away());
}

TEST_F(MailboxOfOneNode, ACancelInTheMiddleOfAMessageTakesItsBufferAway) {
  Bytes into(4);
  const auto receive = mailbox.start_receive(one, data, into);
  mail::Arrival arrival = mailbox.begin(one, data, 4);
  mailbox.borrow(arrival);
  mailbox.cancel(std::make_exception_ptr(Cancelled("enough")));
  mailbox.give_back(arrival, 1);
  EXPECT_THROW(receive->wait(far_away()), Cancelled);
  EXPECT_TRUE(mailbox.borrow(arrival).empty());
  mailbox.give_back(arrival, 3);
}

TEST_F(MailboxOfOneNode, ALossInTheMiddleOfAMessageEndsItsReceive) {
  Bytes into(4);
  const auto receive = mailbox.start_receive(one, data, into);
  mail::Arrival arrival = mailbox.begin(one, data, 4);
  mailbox.borrow(arrival);
  mailbox.give_back(arrival, 1);
  mailbox.lose(one, std::make_exception_ptr(PeerLost(one, "gone")));
  EXPECT_THROW(receive->wait(far_away()), PeerLost);
}

TEST_F(MailboxOfOneNode, MemoryIsAllocatedAsTheBytesCome) {
  mail::Arrival arrival = mailbox.begin(one, data, std::size_t{1} << 40);
  EXPECT_EQ(arrival.payload.capacity(), 0U) << "for an announcement";
  const Bytes sent = pattern(1'000'000, 1);
  constexpr std::size_t piece = 1000;
  for (std::size_t have = 0; have < sent.size(); have += piece) {
    const auto room = mailbox.borrow(arrival, piece);
    ASSERT_GE(room.size(), piece);
    ASSERT_LE(arrival.payload.capacity(), std::max(4 * have, piece));
    std::copy_n(sent.begin() + static_cast<std::ptrdiff_t>(have), piece, room.begin());
    mailbox.give_back(arrival, piece);
  }
  arrival.payload.resize(sent.size());
  EXPECT_TRUE(arrival.payload == sent);
}

TEST_F(MailboxOfOneNode, APieceMayEndTheMessage) {
  const Bytes sent = pattern(2500, 1);
  mail::Arrival arrival = mailbox.begin(one, data, sent.size());
  while (arrival.missing() > 0) {
    const auto room = mailbox.borrow(arrival, 1000);
    const std::size_t count = std::min<std::size_t>(700, room.size());
    std::copy_n(sent.begin() + static_cast<std::ptrdiff_t>(arrival.have), count, room.begin());
    mailbox.give_back(arrival, count);
  }
  EXPECT_EQ(mailbox.try_receive(one, data, far_away())->payload, sent);
}

TEST_F(MailboxOfOneNode, MessagesOfALostPeerStayUntilItIsForgotten) {
  for (const NodeId peer : {one, two}) {
    arrive(peer, data, pattern(4, 1));
    arrive(peer, other, pattern(4, 2));
  }
  mailbox.lose(one, std::make_exception_ptr(PeerLost(one, "gone")));
  EXPECT_EQ(mailbox.try_receive(one, data, far_away())->payload, pattern(4, 1));
  mailbox.forget(one);
  EXPECT_THROW(mailbox.try_receive(one, other, far_away()), PeerLost);
  EXPECT_EQ(mailbox.try_receive(two, other, far_away())->payload, pattern(4, 2));
}

}  // namespace
}  // namespace syncopate::contract
