// Goal:   messages arrive whole and in the promised order, from one sender or from any.
// Method: small clusters exchange payloads that are generated from a mark; every received byte is
//         compared. If a message should arrive before its receive begins, a second message reports
//         that it was sent; no result depends on whether the first one has arrived by then.

#include <gmock/gmock.h>

#include <set>

#include "base/errors.hpp"
#include "tests/contract/contract_cluster.hpp"
#include "tests/contract/payload.hpp"
#include "transport/tags.hpp"

namespace syncopate::contract {
namespace {

constexpr NodeId node_zero{0};
constexpr NodeId node_one{1};
constexpr Tag data = tags::allgather;
constexpr Tag other = tags::broadcast;
constexpr Tag control = tags::round_ends;

TEST_P(TransportContract, EachNodeHasItsNumberAndAnAddress) {
  cluster->run(3, [](World& world) {
    Transport& transport = world.transport();
    if (transport.self() != node_zero) {
      return post_text(world, node_zero, data, transport.address());
    }
    const std::string one = receive_text(world, node_one, data);
    const std::string two = receive_text(world, NodeId{2}, data);
    EXPECT_THAT(
        (std::set<std::string>{transport.address(), one, two}),
        testing::AllOf(testing::SizeIs(3), testing::Each(testing::Not(testing::IsEmpty()))));
  });
}

TEST_P(TransportContract, MessageArrivesWithSenderTagAndPayload) {
  run_pair([](World& world) { world.transport().post(node_one, data, pattern(1000, 1)); },
           [](World& world) {
             const Message message = world.transport().receive(node_zero, data, soon(world));
             EXPECT_EQ(message.from, node_zero);
             EXPECT_EQ(message.tag, data);
             EXPECT_EQ(message.payload, pattern(1000, 1));
           });
}

TEST_P(TransportContract, PostsAndSendsOfOneTagKeepTheirOrder) {
  constexpr std::uint64_t count = 600;
  run_pair(
      [](World& world) {
        std::vector<Bytes> borrowed;
        std::vector<std::unique_ptr<Transfer>> sends;
        for (std::uint64_t i = 0; i < count; ++i) {
          const std::size_t size = i % 3 == 2 ? 70'000 : i;
          if (i % 2 == 0) {
            world.transport().post(node_one, data, pattern(size, i));
          } else {
            borrowed.push_back(pattern(size, i));
            sends.push_back(world.transport().start_send(node_one, data, borrowed.back()));
          }
        }
        for (const auto& send : sends) {
          send->wait(soon(world));
        }
      },
      [](World& world) {
        for (std::uint64_t i = 0; i < count; ++i) {
          const Message message = world.transport().receive(node_zero, data, soon(world));
          ASSERT_EQ(message.payload, pattern(i % 3 == 2 ? 70'000 : i, i)) << "message " << i;
        }
      });
}

TEST_P(TransportContract, TagsAreIndependent) {
  run_pair(
      [](World& world) {
        post_text(world, node_one, data, "first");
        post_text(world, node_one, other, "second");
        post_text(world, node_one, data, "third");
      },
      [](World& world) {
        EXPECT_EQ(receive_text(world, node_zero, other), "second");
        EXPECT_EQ(receive_text(world, node_zero, data), "first");
        EXPECT_EQ(receive_text(world, node_zero, data), "third");
      });
}

TEST_P(TransportContract, ReceiveFromOneLeavesTheMessagesOfOthers) {
  cluster->run(3, [](World& world) {
    const std::uint32_t self = world.transport().self().value;
    if (self > 0) {
      post_text(world, node_zero, data, self == 1 ? "of one" : "of two");
      return;
    }
    EXPECT_EQ(receive_text(world, NodeId{2}, data), "of two");
    EXPECT_EQ(receive_text(world, NodeId{1}, data), "of one");
  });
}

TEST_P(TransportContract, ReceiveFromAnyoneGetsEachMessageOnceInTheOrderOfItsSender) {
  constexpr std::uint32_t nodes = 5;
  const std::uint64_t each = 40;
  cluster->run(nodes, [&](World& world) {
    Transport& transport = world.transport();
    if (transport.self() != node_zero) {
      for (std::uint64_t i = 0; i < each; ++i) {
        transport.post(node_zero, data, pattern(64, transport.self().value * 1000 + i));
      }
      EXPECT_EQ(receive_text(world, node_zero, control), "done");
      return;
    }
    std::vector<std::uint64_t> next(nodes, 0);
    for (std::uint64_t i = 0; i < each * (nodes - 1); ++i) {
      const Message message = transport.receive(std::nullopt, data, soon(world));
      std::uint64_t& number = next.at(message.from.value);
      ASSERT_EQ(message.payload, pattern(64, message.from.value * 1000 + number));
      ++number;
    }
    EXPECT_THAT(next, testing::ElementsAre(0, each, each, each, each));
    for (std::uint32_t peer = 1; peer < nodes; ++peer) {
      post_text(world, NodeId{peer}, control, "done");
    }
  });
}

TEST_P(TransportContract, StartReceiveTakesAMessageThatComesLater) {
  run_pair(
      [](World& world) {
        EXPECT_EQ(receive_text(world, node_one, control), "ready");
        const Bytes sent = pattern(300'000, 7);
        send(world.transport(), node_one, data, sent, soon(world));
      },
      [](World& world) {
        Bytes into(300'000);
        const auto receive = world.transport().start_receive(node_zero, data, into);
        post_text(world, node_zero, control, "ready");
        receive->wait(soon(world));
        EXPECT_EQ(into, pattern(300'000, 7));
      });
}

TEST_P(TransportContract, StartReceiveTakesAMessageThatIsThere) {
  run_pair(
      [](World& world) {
        world.transport().post(node_one, data, pattern(300'000, 7));
        post_text(world, node_one, control, "sent");
      },
      [](World& world) {
        EXPECT_EQ(receive_text(world, node_zero, control), "sent");
        Bytes into(300'000);
        receive_into(world.transport(), node_zero, data, into, soon(world));
        EXPECT_EQ(into, pattern(300'000, 7));
      });
}

TEST_P(TransportContract, ReceivesAreServedInTheOrderInWhichTheyWerePosted) {
  constexpr std::uint64_t count = 8;
  run_pair(
      [](World& world) {
        EXPECT_EQ(receive_text(world, node_one, control), "ready");
        for (std::uint64_t i = 0; i < count; ++i) {
          world.transport().post(node_one, data, pattern(512, i));
        }
      },
      [](World& world) {
        std::vector<Bytes> into(count, Bytes(512));
        std::vector<std::unique_ptr<Transfer>> receives;
        for (Bytes& bytes : into) {
          receives.push_back(world.transport().start_receive(node_zero, data, bytes));
        }
        post_text(world, node_zero, control, "ready");
        for (std::uint64_t i = count; i-- > 0;) {
          receives[i]->wait(soon(world));
          EXPECT_EQ(into[i], pattern(512, i)) << "receive " << i;
        }
      });
}

TEST_P(TransportContract, EmptyMessagesArriveInTheirPlaces) {
  run_pair(
      [](World& world) {
        world.transport().post(node_one, data, {});
        post_text(world, node_one, data, "between");
        send(world.transport(), node_one, data, {}, soon(world));
        post_text(world, node_one, data, "after");
      },
      [](World& world) {
        EXPECT_EQ(receive_text(world, node_zero, data), "");
        EXPECT_EQ(receive_text(world, node_zero, data), "between");
        receive_into(world.transport(), node_zero, data, {}, soon(world));
        EXPECT_EQ(receive_text(world, node_zero, data), "after");
      });
}

TEST_P(TransportContract, LargeMessagesPassInBothDirectionsAtTheSameTime) {
  constexpr std::size_t size = 40'000'000;
  const auto exchange = [](World& world) {
    const std::uint32_t self = world.transport().self().value;
    const NodeId peer{1 - self};
    const Bytes sent = pattern(size, self);
    Bytes into(size);
    const auto receive = world.transport().start_receive(peer, data, into);
    const auto sending = world.transport().start_send(peer, data, sent);
    post_text(world, peer, control, "on its way");
    EXPECT_EQ(receive_text(world, peer, control), "on its way");
    sending->wait(soon(world));
    receive->wait(soon(world));
    EXPECT_TRUE(into == pattern(size, peer.value)) << "the bytes differ";
  };
  run_pair(exchange, exchange);
}

TEST_P(TransportContract, ABufferOfAnotherSizeIsAProtocolError) {
  run_pair(
      [](World& world) {
        world.transport().post(node_one, data, pattern(100, 1));
        world.transport().post(node_one, data, pattern(100, 2));
        post_text(world, node_one, control, "sent");
        EXPECT_EQ(receive_text(world, node_one, control), "ready");
        world.transport().post(node_one, data, pattern(100, 3));
        world.transport().post(node_one, data, pattern(100, 4));
        post_text(world, node_one, other, "still whole");
      },
      [](World& world) {
        Transport& transport = world.transport();
        EXPECT_EQ(receive_text(world, node_zero, control), "sent");
        Bytes shorter(99);
        Bytes longer(101);
        EXPECT_THROW(receive_into(transport, node_zero, data, shorter, soon(world)), ProtocolError);
        EXPECT_THROW(receive_into(transport, node_zero, data, longer, soon(world)), ProtocolError);

        const auto early_shorter = transport.start_receive(node_zero, data, shorter);
        const auto early_longer = transport.start_receive(node_zero, data, longer);
        post_text(world, node_zero, control, "ready");
        EXPECT_THROW(early_shorter->wait(soon(world)), ProtocolError);
        EXPECT_THROW(early_longer->wait(soon(world)), ProtocolError);
        EXPECT_EQ(receive_text(world, node_zero, other), "still whole");
      });
}

TEST_P(TransportContract, PostNeverBlocks) {
  // Both nodes send far more than any kernel buffer holds before either of them receives anything.
  constexpr std::uint64_t count = 1000;
  const auto flood = [](World& world) {
    const std::uint32_t self = world.transport().self().value;
    const NodeId peer{1 - self};
    for (std::uint64_t i = 0; i < count; ++i) {
      world.transport().post(peer, data, Bytes(64 * 1024, static_cast<std::byte>(i)));
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      const Message message = world.transport().receive(peer, data, soon(world));
      ASSERT_EQ(message.payload.size(), 64U * 1024);
      ASSERT_EQ(message.payload.back(), static_cast<std::byte>(i));
    }
  };
  run_pair(flood, flood);
}

TEST_P(TransportContract, ManyNodesTalkToEachOther) {
  constexpr std::uint32_t nodes = 16;
  cluster->run(nodes, [](World& world) {
    const std::uint32_t self = world.transport().self().value;
    for (std::uint32_t step = 1; step < nodes; ++step) {
      const NodeId to{(self + step) % nodes};
      world.transport().post(to, data, pattern(2000, self * nodes + to.value));
    }
    for (std::uint32_t step = 1; step < nodes; ++step) {
      const NodeId from{(self + step) % nodes};
      const Message message = world.transport().receive(from, data, soon(world));
      EXPECT_EQ(message.payload, pattern(2000, from.value * nodes + self));
    }
  });
}

TEST_P(TransportContract, TrafficIsCountedAtTheSender) {
  run_pair(
      [](World& world) {
        const Traffic before = world.transport().traffic();
        world.transport().post(node_one, data, pattern(1000, 1));
        const Traffic posted = world.transport().traffic();
        EXPECT_EQ(posted.messages_sent, before.messages_sent + 1);
        EXPECT_GT(posted.bytes_sent, before.bytes_sent + 1000) << "headers are included";

        const Bytes large = pattern(100'000, 2);
        const auto sending = world.transport().start_send(node_one, data, large);
        const Traffic sent = world.transport().traffic();
        sending->wait(soon(world));
        EXPECT_EQ(sent.messages_sent, posted.messages_sent + 1);
        EXPECT_GT(sent.bytes_sent, posted.bytes_sent + 100'000);
        EXPECT_LT(sent.bytes_sent, posted.bytes_sent + 101'000) << "headers are small";
        const Traffic to_receiver = world.transport().traffic_to(node_one);
        EXPECT_GE(to_receiver.bytes_sent, 101'000U);
        EXPECT_LE(to_receiver.bytes_sent, sent.bytes_sent);
        EXPECT_EQ(world.transport().traffic_to(NodeId{77}).bytes_sent, 0U) << "no such node";
        EXPECT_THAT(world.transport().path_to(node_one), testing::Not(testing::IsEmpty()));
        EXPECT_EQ(world.transport().path_to(NodeId{77}), "");
      },
      [](World& world) {
        const Traffic before = world.transport().traffic();
        world.transport().receive(node_zero, data, soon(world));
        world.transport().receive(node_zero, data, soon(world));
        EXPECT_EQ(world.transport().traffic().messages_sent, before.messages_sent);
      });
}

}  // namespace
}  // namespace syncopate::contract
