// Goal:   only nodes of the job, of this version, on loopback, complete a handshake; others are
//         refused with a reason, and the job does not notice.
// Method: raw sockets send wrong tokens, versions, bytes and claims, or nothing. Each test then
//         shows that a valid node can still join.

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "tests/contract/raw_peer.hpp"
#include "tests/contract/tcp_cluster.hpp"
#include "tests/support/log_capture.hpp"
#include "transport/tags.hpp"
#include "transport/tcp/refusals.hpp"

namespace syncopate::contract {
namespace {

using testing::HasSubstr;

constexpr Tag data = tags::allgather;

template <class Expected, class Operation>
std::string thrown_by(Operation operation) {
  try {
    operation();
  } catch (const Expected& error) {
    return error.what();
  }
  return "nothing was thrown";
}

wire::Hello hello_of(const std::string& with_token) {
  wire::Hello hello;
  hello.set_token(with_token);
  hello.set_address("127.0.0.1:1");
  return hello;
}

/// Expects that another node can join as node `number` and exchange a message with the coordinator.
void expect_job_goes_on(TcpTransport& coordinator, std::uint32_t number) {
  const auto node = join_coordinator(coordinator.address());
  EXPECT_EQ(node->self(), NodeId{number});
  node->post(coordinator_node, data, {std::byte{1}});
  EXPECT_EQ(coordinator.receive(node->self(), data, far_away()).payload.size(), 1);
  coordinator.post(node->self(), data, std::vector<std::byte>(2));
  EXPECT_EQ(node->receive(coordinator_node, data, far_away()).payload.size(), 2);
}

TEST(TcpHandshake, TheHubNumbersNodesInTheOrderInWhichTheyJoin) {
  const auto coordinator = make_coordinator();
  EXPECT_EQ(coordinator->self(), NodeId{0});
  std::vector<std::unique_ptr<TcpTransport>> nodes;
  for (std::uint32_t number = 1; number <= 5; ++number) {
    nodes.push_back(join_coordinator(coordinator->address()));
    EXPECT_EQ(nodes.back()->self(), NodeId{number});
  }
}

TEST(TcpHandshake, AWrongTokenIsRefusedWithAReasonOnBothSides) {
  LogCapture log;
  const auto coordinator = make_coordinator();
  for (const std::string& wrong : {std::string("another"), std::string(), token + "!"}) {
    EXPECT_THAT(thrown_by<ConfigError>([&] { join_coordinator(coordinator->address(), wrong); }),
                HasSubstr("job token is wrong"));
  }
  EXPECT_THAT(log.text(), HasSubstr("turned away a connection from 127.0.0.1:"));
  EXPECT_THAT(log.text(), HasSubstr("job token is wrong"));
  expect_job_goes_on(*coordinator, 1);
}

TEST(TcpHandshake, AnotherVersionIsRefusedByTheCoordinator) {
  LogCapture log;
  const auto coordinator = make_coordinator();
  std::vector<std::byte> frame = wire::encode_frame(hello_of(token));
  frame.at(4) = std::byte{9};
  RawPeer sender(coordinator->address());
  sender.write(frame);
  EXPECT_THAT(thrown_by<ConfigError>([&] { sender.read_answer(); }),
              HasSubstr("expected protocol version 3, found 9"));
  EXPECT_TRUE(sender.is_at_end());
  EXPECT_THAT(log.text(), HasSubstr("expected protocol version 3, found 9"));
  expect_job_goes_on(*coordinator, 1);
}

TEST(TcpHandshake, AnotherVersionIsRefusedByTheNodeThatJoins) {
  const Descriptor listener = bound_socket();
  ::listen(listener.get(), 1);
  std::thread later_coordinator([&] {
    RawPeer peer(Descriptor(::accept(listener.get(), nullptr, nullptr)));
    std::vector<std::byte> frame = wire::encode_frame(wire::Welcome());
    frame.at(4) = std::byte{9};
    peer.read(wire::frame_header_bytes);
    peer.write(frame);
    peer.is_at_end();
  });
  EXPECT_THAT(thrown_by<ProtocolError>([&] { join_coordinator(address_of(listener)); }),
              HasSubstr("expected protocol version 3, found 9"));
  later_coordinator.join();
}

TEST(TcpHandshake, GarbageOnThePortHarmsNobody) {
  constexpr std::uint64_t seed = 85;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  LogCapture log;
  const auto coordinator = make_coordinator();
  for (int round = 0; round < 50; ++round) {
    std::vector<std::byte> bytes = wire::encode_frame(hello_of(token));
    for (std::uint64_t hit = 0; hit < 1 + random.below(30); ++hit) {
      // Damages only the header's first sixteen bytes: not the length behind them, since the
      // coordinator would wait for the rest of a longer frame, and not the token.
      bytes.at(random.below(16)) ^= static_cast<std::byte>(1 + random.below(255));
    }
    bytes.at(0) ^= std::byte{1};
    RawPeer sender(coordinator->address());
    sender.write(bytes);
    EXPECT_THROW(sender.read_answer(), ConfigError) << "round " << round;
  }
  const std::string web = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  RawPeer browser(coordinator->address());
  browser.write(std::as_bytes(std::span(web)));
  EXPECT_THAT(thrown_by<ConfigError>([&] { browser.read_answer(); }),
              HasSubstr("not a Syncopate node"));
  expect_job_goes_on(*coordinator, 1);
}

TEST(TcpHandshake, DamagedAndOversizedHellosAreRefused) {
  LogCapture log;
  const auto coordinator = make_coordinator();
  std::vector<std::byte> damaged = wire::encode_frame(hello_of(token));
  damaged.at(wire::frame_header_bytes) = std::byte{0xff};
  RawPeer one(coordinator->address());
  one.write(damaged);
  EXPECT_THAT(thrown_by<ConfigError>([&] { one.read_answer(); }), HasSubstr("damaged bytes"));

  RawPeer two(coordinator->address());
  two.write(wire::encode(wire::FrameHeader{wire::FrameKind::hello, 0, std::uint64_t{1} << 40}));
  EXPECT_THAT(thrown_by<ConfigError>([&] { two.read_answer(); }),
              HasSubstr("at most 4096 bytes, found 1099511627776"));

  RawPeer three(coordinator->address());
  three.write(wire::encode(wire::FrameHeader{wire::FrameKind::message, 1, 0}));
  EXPECT_THAT(thrown_by<ConfigError>([&] { three.read_answer(); }), HasSubstr("found kind 4"));
  expect_job_goes_on(*coordinator, 1);
}

TEST(TcpHandshake, ASilentConnectionIsDroppedAtItsDeadline) {
  LogCapture log;
  const auto coordinator = make_coordinator({.handshake_timeout = std::chrono::milliseconds(20)});
  RawPeer silent(coordinator->address());
  RawPeer slow(coordinator->address());
  const std::vector<std::byte> frame = wire::encode_frame(hello_of(token));
  slow.write(std::span(frame).first(30));
  EXPECT_TRUE(silent.is_at_end());
  EXPECT_TRUE(slow.is_at_end());
  EXPECT_TRUE(log.wait_for("expected a handshake within 20 ms"));
}

TEST(TcpHandshake, SilentConnectionsDelayNobody) {
  const auto coordinator = make_coordinator({.handshake_timeout = std::chrono::hours(1)});
  std::vector<RawPeer> silent;
  for (int number = 0; number < 50; ++number) {
    silent.emplace_back(coordinator->address());
  }
  expect_job_goes_on(*coordinator, 1);
}

TEST(TcpHandshake, TheOldestOfTooManySilentConnectionsIsClosed) {
  LogCapture log;
  const auto coordinator = make_coordinator({.handshake_timeout = std::chrono::hours(1)});
  std::vector<RawPeer> silent;
  for (int number = 0; number < 64; ++number) {
    silent.emplace_back(coordinator->address());
  }
  expect_job_goes_on(*coordinator, 1);
  EXPECT_TRUE(silent.at(0).is_at_end()) << "it made room for the node";
  silent.emplace_back(coordinator->address());
  silent.emplace_back(coordinator->address());
  EXPECT_TRUE(silent.at(1).is_at_end()) << "the node has introduced itself, and needs no room";
  EXPECT_EQ(silent.back().greet(hello_of(token)).you(), 2) << "none but the oldest is closed";
  EXPECT_EQ(silent.at(2).greet(hello_of(token)).you(), 3);
  EXPECT_TRUE(log.wait_for("the oldest of these connections are closed"));
}

TEST(TcpHandshake, ANodeIsReachedThroughAFloodOfSilentConnections) {
  LogCapture log;
  const auto coordinator = make_coordinator();
  const auto one = join_coordinator(coordinator->address());
  const auto two = join_coordinator(coordinator->address());
  std::atomic<bool> done = false;
  std::thread flood([&] {
    while (!done) {
      std::vector<RawPeer> silent;
      for (int number = 0; number < 200; ++number) {
        silent.emplace_back(one->address());
      }
    }
  });
  two->introduce(one->self(), one->address());
  two->post(one->self(), data, {});
  EXPECT_EQ(one->receive(std::nullopt, data, far_away()).from, NodeId{2});
  done = true;
  flood.join();
}

TEST(TcpHandshake, ANodeDialsAgainWhereItsConnectionIsClosedUnread) {
  const auto coordinator = make_coordinator();
  const auto one = join_coordinator(coordinator->address());
  const auto two = join_coordinator(coordinator->address());
  Descriptor crowded = bound_socket();
  ASSERT_EQ(::listen(crowded.get(), 8), 0);
  two->introduce(one->self(), address_of(crowded));
  { const Descriptor closed(::accept(crowded.get(), nullptr, nullptr)); }
  RawPeer again(Descriptor(::accept(crowded.get(), nullptr, nullptr)));
  again.read(wire::frame_header_bytes);
  wire::Welcome welcome;
  welcome.set_node(1);
  welcome.set_you(2);
  again.write(wire::encode_frame(welcome));
  two->post(one->self(), data, {});
  EXPECT_FALSE(again.is_at_end());
}

TEST(TcpHandshake, TheRefusalOfAWrongTokenWaitsAndDelaysNobodyElse) {
  LogCapture log;
  const auto coordinator = make_coordinator({.wrong_key_delay = std::chrono::hours(1)});
  RawPeer wrong(coordinator->address());
  wrong.write(wire::encode_frame(hello_of("another")));
  EXPECT_TRUE(log.wait_for("job token is wrong"));
  expect_job_goes_on(*coordinator, 1);
  EXPECT_FALSE(wrong.has_bytes());
  coordinator->close(far_away());
  EXPECT_TRUE(wrong.is_at_end()) << "it never had an answer";
}

TEST(WrongKeys, DelayARefusalLongerEachTime) {
  using std::chrono::milliseconds;
  tcp::WrongKeys keys(milliseconds(250));
  for (const int expected : {250, 500, 1000, 2000, 4000, 4000, 4000}) {
    EXPECT_EQ(keys.count("127.0.0.1"), milliseconds(expected));
  }
  EXPECT_EQ(keys.count("127.0.0.2"), milliseconds(250)) << "another address starts afresh";
  for (int more = 0; more < 100; ++more) {
    EXPECT_EQ(keys.count("127.0.0.1"), milliseconds(4000));
  }
}

TEST(WrongKeys, AddressesBeyondManyShareOneCount) {
  using std::chrono::milliseconds;
  tcp::WrongKeys keys(milliseconds(250));
  for (std::size_t number = 0; number < tcp::WrongKeys::most_addresses; ++number) {
    EXPECT_EQ(keys.count(std::to_string(number)), milliseconds(250));
  }
  EXPECT_EQ(keys.count("one more"), milliseconds(250));
  EXPECT_EQ(keys.count("and another"), milliseconds(500));
  EXPECT_EQ(keys.count("7"), milliseconds(500));
}

TEST(TcpHandshake, ANodeThatBreaksTheProtocolLaterIsLost) {
  const auto coordinator = make_coordinator();
  RawPeer node(coordinator->address());
  EXPECT_EQ(node.greet(hello_of(token)).you(), 1);
  node.write(wire::encode(wire::FrameHeader{wire::FrameKind::message, data.value, 0}));
  node.write(std::vector<std::byte>(wire::frame_header_bytes));
  EXPECT_EQ(coordinator->receive(std::nullopt, data, far_away()).from, NodeId{1});
  EXPECT_THAT(thrown_by<PeerLost>([&] { coordinator->receive(std::nullopt, data, far_away()); }),
              HasSubstr("node 1 (127.0.0.1:1) is lost: expected a Syncopate frame"));
  expect_job_goes_on(*coordinator, 2);
}

TEST(TcpHandshake, NobodyTakesTheNumberOfAnother) {
  LogCapture log;
  const auto coordinator = make_coordinator();
  const auto one = join_coordinator(coordinator->address());
  const auto two = join_coordinator(coordinator->address());
  one->introduce(two->self(), two->address());
  two->introduce(one->self(), one->address());
  two->post(one->self(), data, {});
  EXPECT_EQ(one->receive(std::nullopt, data, far_away()).from, NodeId{2});

  const auto refusal = [](const std::string& where, std::optional<std::uint32_t> claimed) {
    wire::Hello hello = hello_of(token);
    if (claimed) {
      hello.set_node(*claimed);
    }
    RawPeer sender(where);
    return thrown_by<ConfigError>([&] { sender.greet(hello); });
  };
  EXPECT_THAT(refusal(one->address(), 2), HasSubstr("node 2 has been connected"));
  EXPECT_THAT(refusal(two->address(), 1), HasSubstr("expected node 2 to dial node 1"));
  EXPECT_THAT(refusal(two->address(), 2), HasSubstr("expected node 2 to dial node 2"));
  EXPECT_THAT(refusal(coordinator->address(), 1), HasSubstr("expected node 0 to dial node 1"));
  EXPECT_THAT(refusal(one->address(), {}), HasSubstr("join at the address of node 0"));
}

TEST(TcpHandshake, TheGreaterNodeMayDialBeforeTheLesserIsTold) {
  const auto coordinator = make_coordinator();
  const auto one = join_coordinator(coordinator->address());
  const auto two = join_coordinator(coordinator->address());
  two->introduce(one->self(), one->address());
  two->post(one->self(), data, {});
  EXPECT_EQ(one->receive(std::nullopt, data, far_away()).from, NodeId{2});
  one->introduce(two->self(), two->address());
  one->post(two->self(), data, {});
  EXPECT_EQ(two->receive(one->self(), data, far_away()).from, NodeId{1});
}

TEST(TcpHandshake, WhatTheLesserSendsWaitsForTheGreaterToDial) {
  const auto coordinator = make_coordinator();
  const auto one = join_coordinator(coordinator->address());
  const auto two = join_coordinator(coordinator->address());
  one->introduce(two->self(), two->address());
  one->post(two->self(), data, {});
  two->introduce(one->self(), one->address());
  EXPECT_EQ(two->receive(one->self(), data, far_away()).from, NodeId{1});
}

TEST(TcpHandshake, APeerThatIsNotThereIsLost) {
  const auto coordinator = make_coordinator();
  const auto one = join_coordinator(coordinator->address());
  const auto two = join_coordinator(coordinator->address());
  const std::string address = one->address();
  one->close(far_away());
  two->introduce(one->self(), address);
  EXPECT_THAT(thrown_by<PeerLost>([&] { two->receive(one->self(), data, far_away()); }),
              HasSubstr("node 1 (" + address + ") is lost: "));
}

TEST(TcpHandshake, AnEndedNodeKeepsNobodyWaitingForItsHandshake) {
  const auto coordinator = make_coordinator();
  const auto one = join_coordinator(coordinator->address());
  const auto two = join_coordinator(coordinator->address());
  Descriptor silent = bound_socket();
  ASSERT_EQ(::listen(silent.get(), 1), 0);
  two->introduce(one->self(), address_of(silent));
  RawPeer dialled(Descriptor(::accept(silent.get(), nullptr, nullptr)));
  EXPECT_FALSE(dialled.is_at_end());
  two->close(steady_now());
  dialled.read_to_end();
}

TEST(TcpHandshake, JoiningWaitsForTheCoordinator) {
  Descriptor listener = bound_socket();
  const std::string address = address_of(listener);
  EXPECT_THAT(
      thrown_by<TimedOut>([&] {
        TcpTransport::join(
            {.coordinator = address, .token = token, .timeout = std::chrono::milliseconds(50)});
      }),
      HasSubstr("nobody answers at " + address + " within 50 ms"));
  std::thread early([&] { EXPECT_EQ(join_coordinator(address)->self(), NodeId{1}); });
  ::listen(listener.get(), 8);
  const auto coordinator = TcpTransport::listen({.token = token, .descriptor = listener.release()});
  EXPECT_EQ(coordinator->address(), address);
  early.join();
}

TEST(TcpHandshake, JobsOfOneHostKeepApart) {
  LogCapture log;
  const auto make_job = [](const std::string& secret) {
    return TcpTransport::listen({.token = secret});
  };
  const auto coordinator_a = make_job("job a");
  const auto coordinator_b = make_job("job b");
  const auto node_a = join_coordinator(coordinator_a->address(), "job a");
  const auto node_b = join_coordinator(coordinator_b->address(), "job b");
  EXPECT_EQ(node_a->self(), NodeId{1});
  EXPECT_EQ(node_b->self(), NodeId{1});
  node_a->post(coordinator_node, data, std::vector<std::byte>(1));
  node_b->post(coordinator_node, data, std::vector<std::byte>(2));
  EXPECT_EQ(coordinator_a->receive(std::nullopt, data, far_away()).payload.size(), 1);
  EXPECT_EQ(coordinator_b->receive(std::nullopt, data, far_away()).payload.size(), 2);
  EXPECT_THROW(join_coordinator(coordinator_a->address(), "job b"), ConfigError);
}

TEST(TcpHandshake, OnlyLoopbackIsAccepted) {
  for (const std::string& address : {std::string("0.0.0.0:0"), std::string("192.0.2.1:9091"),
                                     std::string("[::]:0"), std::string("10.1.2.3:80")}) {
    const auto listening = [&] { TcpTransport::listen({.token = token, .address = address}); };
    const auto joining = [&] { join_coordinator(address); };
    EXPECT_THAT(thrown_by<ConfigError>(listening), HasSubstr("must be encrypted by a key"))
        << address;
    EXPECT_THAT(thrown_by<ConfigError>(joining), HasSubstr("must be encrypted by a key"))
        << address;
  }
  const auto coordinator = make_coordinator();
  EXPECT_THROW(coordinator->introduce(NodeId{1}, "192.0.2.1:9091"), ConfigError);
}

TEST(TcpHandshake, ATrustedNetworkTakesEveryAddressAtWhichANodeIsFound) {
  const auto anywhere = [] {
    TcpTransport::listen(
        {.token = token, .address = "0.0.0.0:0", .network = tcp::Network::trusted});
  };
  EXPECT_THAT(thrown_by<ConfigError>(anywhere), HasSubstr("at which other nodes find this one"));
  const auto coordinator = TcpTransport::listen({.token = token, .network = tcp::Network::trusted});
  coordinator->introduce(NodeId{1}, "192.0.2.1:9091");
  EXPECT_EQ(join_coordinator(coordinator->address())->self(), NodeId{1});
}

TEST(TcpHandshake, WhatIsNoAddressIsRefusedInItsOwnWords) {
  for (const std::string address : {"", "127.0.0.1", "127.0.0.1:", ":80", "127.0.0.1:70000",
                                    "127.0.0.1:8x", "127.0.0.1:-1", "somewhere:80"}) {
    EXPECT_THAT(thrown_by<ConfigError>([&] { join_coordinator(address); }),
                HasSubstr("found \"" + address + "\""));
  }
}

TEST(TcpHandshake, WhatCannotListenIsRefused) {
  const auto coordinator = make_coordinator();
  const auto again = [&] {
    TcpTransport::listen({.token = token, .address = coordinator->address()});
  };
  EXPECT_THAT(thrown_by<ConfigError>(again),
              HasSubstr("cannot listen at " + coordinator->address()));

  const Descriptor idle = bound_socket();
  const auto adopting = [&] { TcpTransport::listen({.token = token, .descriptor = idle.get()}); };
  EXPECT_THAT(thrown_by<ConfigError>(adopting), HasSubstr("is not a listening socket"));
}

}  // namespace
}  // namespace syncopate::contract
