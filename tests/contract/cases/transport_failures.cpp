// Goal:   deadlines, lost peers, cancellation and closing end operations as promised; messages that
//         arrived before are still delivered.
// Method: nodes die, close or are cancelled at chosen points of a conversation; every operation
//         then has one promised outcome; the test compares its type and the peer that it names.

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

/// Bytes of a message that is too large to be sent completely before the test cancels it.
constexpr std::size_t huge = 200'000'000;
constexpr std::byte last_byte{7};

/// Runs `operation`. Returns the peer of the PeerLost that it throws, or nothing without one.
template <class Operation>
std::optional<NodeId> lost_in(Operation operation) {
  try {
    operation();
  } catch (const PeerLost& loss) {
    return loss.peer();
  }
  return std::nullopt;
}

template <class Operation>
bool times_out(Operation operation) {
  try {
    operation();
  } catch (const TimedOut&) {
    return true;
  }
  return false;
}

void expect_everything_lost(World& world, NodeId peer) {
  Transport& transport = world.transport();
  Bytes bytes(10);
  const auto receiving = [&] { transport.receive(peer, data, soon(world)); };
  const auto receiving_into = [&] { receive_into(transport, peer, data, bytes, soon(world)); };
  const auto sending = [&] { send(transport, peer, data, bytes, soon(world)); };
  EXPECT_EQ(lost_in(receiving), peer);
  EXPECT_EQ(lost_in(receiving_into), peer);
  EXPECT_EQ(lost_in(sending), peer);
  EXPECT_NO_THROW(transport.post(peer, data, bytes)) << "posting never throws for a lost peer";
}

TEST_P(TransportContract, AReceiveTimesOutAndMayBeTriedAgain) {
  run_pair(
      [](World& world) {
        EXPECT_EQ(receive_text(world, node_one, control), "now");
        post_text(world, node_one, data, "late");
      },
      [](World& world) {
        const TimePoint deadline = shortly(world);
        EXPECT_THROW(world.transport().receive(node_zero, data, deadline), TimedOut);
        EXPECT_GE(world.now(), deadline);
        EXPECT_THROW(world.transport().receive(std::nullopt, data, shortly(world)), TimedOut);
        EXPECT_THROW(world.transport().receive(node_zero, data, world.now()), TimedOut);
        EXPECT_FALSE(world.transport().try_receive(node_zero, data, world.now()));
        EXPECT_FALSE(world.transport().try_receive(std::nullopt, data, shortly(world)));
        post_text(world, node_zero, control, "now");
        EXPECT_EQ(receive_text(world, node_zero, data), "late");
      });
}

TEST_P(TransportContract, AStartedReceiveTimesOutAndMayBeWaitedForAgain) {
  run_pair(
      [](World& world) {
        EXPECT_EQ(receive_text(world, node_one, control), "now");
        post_text(world, node_one, data, "late");
      },
      [](World& world) {
        Bytes into(4);
        const auto receive = world.transport().start_receive(node_zero, data, into);
        const TimePoint deadline = shortly(world);
        EXPECT_THROW(receive->wait(deadline), TimedOut);
        EXPECT_GE(world.now(), deadline);
        post_text(world, node_zero, control, "now");
        receive->wait(soon(world));
        EXPECT_EQ(text_of(into), "late");
      });
}

TEST_P(TransportContract, ASendThatTimesOutCutsTheStream) {
  run_pair(
      [](World& world) {
        const Bytes large(huge);
        const auto sending = world.transport().start_send(node_one, data, large);
        EXPECT_THROW(sending->wait(world.now()), TimedOut);
        expect_everything_lost(world, node_one);
      },
      [](World& world) {
        EXPECT_EQ(lost_in([&] { world.transport().receive(node_zero, data, soon(world)); }),
                  node_zero);
      });
}

TEST_P(TransportContract, APeerThatIsGivenUpIsLostOnBothSides) {
  run_pair(
      [](World& world) {
        Transport& transport = world.transport();
        Bytes into(10);
        const auto receive = transport.start_receive(node_one, other, into);
        EXPECT_EQ(receive_text(world, node_one, control), "here");
        transport.give_up(node_one);
        EXPECT_EQ(lost_in([&] { receive->wait(soon(world)); }), node_one);
        expect_everything_lost(world, node_one);
        transport.give_up(node_one);
      },
      [](World& world) {
        post_text(world, node_zero, control, "here");
        EXPECT_EQ(lost_in([&] { world.transport().receive(node_zero, data, soon(world)); }),
                  node_zero);
      });
}

/// If the receiver gets no processor for a long time, the whole message may have arrived when it
/// gives up. The send then ends without an error.
TEST_P(TransportContract, GivingUpAPeerFreesABufferThatItHasBegunToFill) {
  run_pair(
      [](World& world) {
        Transport& transport = world.transport();
        auto into = std::make_unique<Bytes>(huge);
        auto receive = transport.start_receive(node_one, data, *into);
        EXPECT_EQ(receive_text(world, node_one, control), "sending");
        const bool partly = times_out([&] { receive->wait(world.now()); });
        transport.give_up(node_one);
        receive.reset();
        EXPECT_TRUE(partly || into->back() == last_byte);
        into.reset();
      },
      [](World& world) {
        Bytes large(huge);
        large.back() = last_byte;
        post_text(world, node_zero, control, "sending");
        const auto sending = world.transport().start_send(node_zero, data, large);
        EXPECT_EQ(lost_in([&] { sending->wait(soon(world)); }).value_or(node_zero), node_zero);
      });
}

TEST_P(TransportContract, WhatArrivedFromADeadPeerIsReceivedBeforeItsLoss) {
  run_pair(
      [this](World& world) {
        for (std::uint64_t i = 0; i < 3; ++i) {
          world.transport().post(node_one, data, pattern(100, i));
        }
        post_text(world, node_one, control, "sent");
        EXPECT_EQ(receive_text(world, node_one, control), "die");
        cluster->kill(node_zero);
      },
      [](World& world) {
        Transport& transport = world.transport();
        EXPECT_EQ(receive_text(world, node_zero, control), "sent");
        post_text(world, node_zero, control, "die");
        EXPECT_EQ(lost_in([&] { transport.receive(node_zero, other, soon(world)); }), node_zero);
        EXPECT_EQ(transport.receive(node_zero, data, soon(world)).payload, pattern(100, 0));
        Bytes second(100);
        receive_into(transport, node_zero, data, second, soon(world));
        EXPECT_EQ(second, pattern(100, 1));
        EXPECT_EQ(transport.receive(std::nullopt, data, soon(world)).payload, pattern(100, 2));
        expect_everything_lost(world, node_zero);
      });
}

TEST_P(TransportContract, TheLossOfAPeerEndsWhatIsUnderWay) {
  run_pair(
      [this](World& world) {
        EXPECT_EQ(receive_text(world, node_one, control), "waiting");
        cluster->kill(node_zero);
      },
      [](World& world) {
        Transport& transport = world.transport();
        Bytes into(10);
        const auto receive = transport.start_receive(node_zero, other, into);
        const auto task = world.spawn("receiver", [&] {
          EXPECT_EQ(lost_in([&] { transport.receive(node_zero, data, soon(world)); }), node_zero);
        });
        post_text(world, node_zero, control, "waiting");
        EXPECT_EQ(lost_in([&] { receive->wait(soon(world)); }), node_zero);
        task->join();
        expect_everything_lost(world, node_zero);
      });
}

/// Requires all nodes in one process: `kill` closes the transport of the node that it ends. Another
/// process could only ask the node to end itself, as the tests above do, or send it a signal, after
/// which MPI ends all ranks.
TEST_P(TransportContract, ABodyMayBeKilledFromAnotherNode) {
  run_pair(
      [this](World& world) {
        EXPECT_EQ(receive_text(world, node_one, control), "about to wait");
        cluster->kill(node_one);
        EXPECT_EQ(lost_in([&] { world.transport().receive(node_one, data, soon(world)); }),
                  node_one);
      },
      [](World& world) {
        post_text(world, node_zero, control, "about to wait");
        world.transport().receive(node_zero, data, no_deadline);
      });
}

TEST_P(TransportContract, AReceiveFromAnyoneReportsEachLossOnce) {
  cluster->run(4, [this](World& world) {
    Transport& transport = world.transport();
    if (transport.self() != node_zero) {
      post_text(world, node_zero, data, "last words");
      EXPECT_EQ(receive_text(world, node_zero, control), "heard");
      if (transport.self() != NodeId{3}) {
        cluster->kill(transport.self());
        return;
      }
      EXPECT_EQ(receive_text(world, node_zero, control), "done");
      return;
    }
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(receive_text(world, std::nullopt, data), "last words");
    }
    for (std::uint32_t peer = 1; peer < 4; ++peer) {
      post_text(world, NodeId{peer}, control, "heard");
    }
    std::multiset<std::uint32_t> lost;
    for (int i = 0; i < 2; ++i) {
      const auto peer = lost_in([&] { transport.receive(std::nullopt, data, soon(world)); });
      lost.insert(peer.value_or(NodeId{99}).value);
    }
    EXPECT_THAT(lost, testing::ElementsAre(1, 2));
    EXPECT_THROW(transport.receive(std::nullopt, data, shortly(world)), TimedOut);
    EXPECT_THROW(transport.receive(std::nullopt, other, shortly(world)), TimedOut);
    post_text(world, NodeId{3}, control, "done");
  });
}

TEST_P(TransportContract, CloseFlushesAndThenLooksLikeALoss) {
  constexpr std::uint64_t count = 300;
  run_pair(
      [](World& world) {
        for (std::uint64_t i = 0; i < count; ++i) {
          world.transport().post(node_one, data, pattern(50'000, i));
        }
        world.transport().close(soon(world));
      },
      [](World& world) {
        for (std::uint64_t i = 0; i < count; ++i) {
          const Message message = world.transport().receive(node_zero, data, soon(world));
          ASSERT_EQ(message.payload, pattern(50'000, i)) << "message " << i;
        }
        expect_everything_lost(world, node_zero);
      });
}

TEST_P(TransportContract, CloseGivesUpAtItsDeadline) {
  run_pair(
      [](World& world) {
        EXPECT_EQ(receive_text(world, node_one, control), "waiting");
        world.transport().post(node_one, data, Bytes(huge));
        world.transport().close(world.now());
      },
      [](World& world) {
        post_text(world, node_zero, control, "waiting");
        EXPECT_EQ(lost_in([&] { world.transport().receive(node_zero, data, soon(world)); }),
                  node_zero);
      });
}

TEST_P(TransportContract, UnknownNodesAreAnInternalError) {
  cluster->run(1, [](World& world) {
    Transport& transport = world.transport();
    for (const NodeId unknown : {NodeId{7}, transport.self()}) {
      Bytes bytes(10);
      EXPECT_THROW(transport.post(unknown, data, {}), InternalError);
      EXPECT_THROW(send(transport, unknown, data, bytes, soon(world)), InternalError);
      EXPECT_THROW(receive_into(transport, unknown, data, bytes, soon(world)), InternalError);
      EXPECT_THROW(transport.receive(unknown, data, soon(world)), InternalError);
    }
  });
}

TEST_P(TransportContract, ADiallingNodeNeedsNoIntroduction) {
  cluster->run(3, Introductions::to_node_zero, [](World& world) {
    if (world.transport().self() != node_zero) {
      post_text(world, node_zero, data, "hello");
      EXPECT_EQ(receive_text(world, node_zero, data), "welcome");
      return;
    }
    // A node leaves once it is welcomed, which would fail this node's receives from any node. So
    // this node receives from both before it welcomes either.
    std::vector<NodeId> callers;
    while (callers.size() < 2) {
      const Message message = world.transport().receive(std::nullopt, data, soon(world));
      EXPECT_EQ(text_of(message.payload), "hello");
      callers.push_back(message.from);
    }
    for (const NodeId caller : callers) {
      post_text(world, caller, data, "welcome");
    }
  });
}

TEST_P(TransportContract, IntroducingAPeerAgainChangesNothing) {
  const auto body = [](World& world) {
    Transport& transport = world.transport();
    const NodeId peer{1 - transport.self().value};
    post_text(world, peer, data, "before");
    post_text(world, peer, control, transport.address());
    const std::string address = receive_text(world, peer, control);
    transport.introduce(peer, address);
    transport.introduce(peer, address);
    post_text(world, peer, data, "after");
    EXPECT_EQ(receive_text(world, peer, data), "before");
    EXPECT_EQ(receive_text(world, peer, data), "after");
  };
  run_pair(body, body);
}

TEST_P(TransportContract, CancelEndsWhatIsUnderWayWithItsFirstReason) {
  run_pair(
      [](World& world) {
        EXPECT_EQ(receive_text(world, node_one, control), "over");
        // Waits until the other node has ended: the earlier end of this node would be a loss to it.
        EXPECT_EQ(lost_in([&] { world.transport().receive(node_one, data, soon(world)); }),
                  node_one);
      },
      [](World& world) {
        Transport& transport = world.transport();
        post_text(world, node_zero, control, "over");
        Bytes into(10);
        const auto receive = transport.start_receive(node_zero, other, into);
        const auto one =
            world.spawn("from one", [&] { transport.receive(node_zero, data, no_deadline); });
        const auto any =
            world.spawn("from any", [&] { transport.receive(std::nullopt, control, no_deadline); });
        transport.cancel(std::make_exception_ptr(Cancelled("the first reason")));
        transport.cancel(std::make_exception_ptr(InternalError("the second")));
        EXPECT_THROW(receive->wait(no_deadline), Cancelled);
        EXPECT_THROW(one->join(), Cancelled);
        EXPECT_THROW(any->join(), Cancelled);
      });
}

TEST_P(TransportContract, CancelByATimedOutIsNoMissedDeadline) {
  run_pair([](World& world) { receive_text(world, node_one, control); },
           [](World& world) {
             Transport& transport = world.transport();
             post_text(world, node_zero, control, "over");
             const auto waiting = world.spawn(
                 "from any", [&] { transport.try_receive(std::nullopt, control, no_deadline); });
             transport.cancel(std::make_exception_ptr(TimedOut("the job has ended")));
             EXPECT_THROW(waiting->join(), TimedOut);
             EXPECT_THROW(transport.try_receive(node_zero, data, world.now()), TimedOut);
           });
}

TEST_P(TransportContract, CancelEndsASend) {
  run_pair(
      [](World& world) {
        const Bytes large(huge);
        const auto sending = world.transport().start_send(node_one, data, large);
        world.transport().cancel(std::make_exception_ptr(Cancelled("enough")));
        EXPECT_THROW(sending->wait(no_deadline), Cancelled);
      },
      [](World& world) {
        EXPECT_EQ(lost_in([&] { world.transport().receive(node_zero, data, soon(world)); }),
                  node_zero);
      });
}

TEST_P(TransportContract, CancelRefusesWhatBeginsLaterAndDropsWhatHadArrived) {
  run_pair(
      [](World& world) {
        post_text(world, node_one, data, "dropped");
        post_text(world, node_one, control, "sent");
      },
      [](World& world) {
        Transport& transport = world.transport();
        EXPECT_EQ(receive_text(world, node_zero, control), "sent");
        transport.cancel(std::make_exception_ptr(Cancelled("enough")));
        Bytes bytes(10);
        EXPECT_THROW(transport.receive(node_zero, data, soon(world)), Cancelled);
        EXPECT_THROW(transport.receive(std::nullopt, data, soon(world)), Cancelled);
        EXPECT_THROW(receive_into(transport, node_zero, data, bytes, soon(world)), Cancelled);
        EXPECT_THROW(send(transport, node_zero, data, bytes, soon(world)), Cancelled);
        EXPECT_THROW(transport.post(node_zero, data, bytes), Cancelled);
      });
}

TEST_P(TransportContract, DestroyingAReceiveThatHasNotBegunWithdrawsIt) {
  run_pair(
      [](World& world) {
        EXPECT_EQ(receive_text(world, node_one, control), "withdrawn");
        post_text(world, node_one, data, "for another");
      },
      [](World& world) {
        {
          Bytes into(11);
          world.transport().start_receive(node_zero, data, into);
        }
        post_text(world, node_zero, control, "withdrawn");
        EXPECT_EQ(receive_text(world, node_zero, data), "for another");
      });
}

TEST_P(TransportContract, DestroyingASendWaitsUntilItsBufferIsFree) {
  constexpr std::size_t size = 20'000'000;
  run_pair(
      [](World& world) {
        Bytes borrowed = pattern(size, 5);
        world.transport().start_send(node_one, data, borrowed);
        std::fill(borrowed.begin(), borrowed.end(), std::byte{0});
      },
      [](World& world) {
        const Message message = world.transport().receive(node_zero, data, soon(world));
        EXPECT_TRUE(message.payload == pattern(size, 5)) << "the bytes differ";
      });
}

TEST_P(TransportContract, DestroyingATransferAfterALossDoesNotBlock) {
  run_pair([this](World&) { cluster->kill(node_zero); },
           [](World& world) {
             Bytes into(10);
             auto receive = world.transport().start_receive(node_zero, data, into);
             EXPECT_EQ(lost_in([&] { receive->wait(soon(world)); }), node_zero);
             receive.reset();
             expect_everything_lost(world, node_zero);
           });
}

TEST_P(TransportContract, DestroyingATransferAfterCancelFreesItsBuffer) {
  run_pair(
      [](World& world) {
        Transport& transport = world.transport();
        auto large = std::make_unique<Bytes>(huge);
        auto into = std::make_unique<Bytes>(10);
        auto sending = transport.start_send(node_one, data, *large);
        auto receiving = transport.start_receive(node_one, data, *into);
        transport.cancel(std::make_exception_ptr(Cancelled("enough")));
        sending.reset();
        receiving.reset();
        large.reset();
        into.reset();
        EXPECT_THROW(transport.receive(node_one, data, no_deadline), Cancelled);
      },
      [](World& world) {
        post_text(world, node_zero, data, "0123456789");
        EXPECT_EQ(lost_in([&] { world.transport().receive(node_zero, data, soon(world)); }),
                  node_zero);
      });
}

}  // namespace
}  // namespace syncopate::contract
