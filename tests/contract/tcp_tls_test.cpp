// Goal:   an encrypted network admits only nodes that know the key, shows nothing of what passes,
//         and notices a changed byte; a recorded handshake is worth nothing.
// Method: a relay between node and coordinator records, repeats or changes bytes; nodes with
//         another key, or without encryption; a session whose key changes often.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <asio/error.hpp>
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/errors.hpp"
#include "tests/contract/payload.hpp"
#include "tests/contract/raw_peer.hpp"
#include "tests/contract/tcp_cluster.hpp"
#include "tests/support/log_capture.hpp"
#include "transport/tags.hpp"
#include "transport/tcp/tls.hpp"

namespace syncopate::contract {
namespace {

using testing::HasSubstr;

constexpr Tag data = tags::allgather;
constexpr auto encrypted = tcp::Network::encrypted;

std::unique_ptr<TcpTransport> encrypted_coordinator() {
  return make_coordinator({}, /*shared_memory=*/false, encrypted);
}

std::unique_ptr<TcpTransport> encrypted_node(const std::string& coordinator,
                                             const std::string& key = token) {
  return join_coordinator(coordinator, key, /*shared_memory=*/false, encrypted);
}

template <class Expected>
std::string error_of(const std::function<void()>& operation) {
  try {
    operation();
  } catch (const Expected& error) {
    return error.what();
  }
  return "nothing was thrown";
}

void expect_that_a_node_can_join(const TcpTransport& coordinator, std::uint32_t number) {
  EXPECT_EQ(encrypted_node(coordinator.address())->self(), NodeId{number});
}

/// Passes the bytes of one stream on in both directions, and records them.
class Relay {
 public:
  using Change = std::function<void(Bytes& part, std::size_t before)>;

  /// `change` may change what goes to the coordinator; `before`: the bytes that went before.
  explicit Relay(std::string to, Change change = {})
      : to_(std::move(to)), change_(std::move(change)), listener_(bound_socket()) {
    ::listen(listener_.get(), 1);
    thread_ = std::thread([this] { run(); });
  }
  ~Relay() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  std::string address() const { return address_of(listener_); }
  /// What the node that dials has sent.
  Bytes sent() {
    const std::lock_guard lock(mutex_);
    return sent_;
  }
  Bytes both() {
    const std::lock_guard lock(mutex_);
    Bytes all = sent_;
    all.insert(all.end(), answered_.begin(), answered_.end());
    return all;
  }

 private:
  void run() {
    const int accepted = ::accept(listener_.get(), nullptr, nullptr);
    if (accepted < 0) {
      return;
    }
    const Descriptor near(accepted);
    const Descriptor far(::socket(AF_INET, SOCK_STREAM, 0));
    const sockaddr_in there = loopback(std::stoi(to_.substr(to_.rfind(':') + 1)));
    if (::connect(far.get(), reinterpret_cast<const sockaddr*>(&there), sizeof(there)) != 0) {
      return;  // the stream ends, which the test sees
    }
    std::thread back([&] { pass(far.get(), near.get(), answered_, {}); });
    pass(near.get(), far.get(), sent_, change_);
    back.join();
  }

  void pass(int from, int to, Bytes& record, const Change& change) {
    Bytes part(1 << 16);
    for (ssize_t got = 0; (got = ::recv(from, part.data(), part.size(), 0)) > 0;) {
      Bytes passed(part.begin(), part.begin() + got);
      {
        const std::lock_guard lock(mutex_);
        if (change) {
          change(passed, record.size());
        }
        record.insert(record.end(), passed.begin(), passed.end());
      }
      ::send(to, passed.data(), passed.size(), MSG_NOSIGNAL);
    }
    ::shutdown(to, SHUT_WR);
  }

  const std::string to_;
  const Change change_;
  const Descriptor listener_;
  std::mutex mutex_;
  Bytes sent_;
  Bytes answered_;
  std::thread thread_;
};

bool contains(const Bytes& all, const Bytes& part) {
  return std::search(all.begin(), all.end(), part.begin(), part.end()) != all.end();
}

TEST(TcpTls, AnotherKeyIsRefusedOnBothSides) {
  LogCapture log;
  const auto coordinator = encrypted_coordinator();
  for (const std::string& wrong : {std::string("another key"), std::string(), token + "!"}) {
    EXPECT_THAT(error_of<ConfigError>([&] { encrypted_node(coordinator->address(), wrong); }),
                HasSubstr("the job's key is not that of the other side"));
  }
  EXPECT_THAT(log.text(), HasSubstr("turned away a connection from 127.0.0.1:"));
  EXPECT_THAT(log.text(), HasSubstr("the job's key is not that of the other side"));
  expect_that_a_node_can_join(*coordinator, 1);
}

TEST(TcpTls, ANodeThatDoesNotEncryptIsTold) {
  LogCapture log;
  const auto coordinator = encrypted_coordinator();
  EXPECT_THAT(error_of<ConfigError>([&] { join_coordinator(coordinator->address()); }),
              HasSubstr("the streams of this job are encrypted: join it with its key"));
  expect_that_a_node_can_join(*coordinator, 1);
}

/// The refusal comes after the socket was closed: it must touch no other with the same descriptor.
TEST(TcpTls, AHandshakeThatStopsHalfwayIsGivenUp) {
  LogCapture log;
  const auto coordinator = make_coordinator({.handshake_timeout = std::chrono::milliseconds(50)},
                                            /*shared_memory=*/false, encrypted);
  RawPeer silent(coordinator->address());
  silent.write(Bytes{std::byte{tcp::Tls::first_byte}, std::byte{3}, std::byte{1}});
  EXPECT_TRUE(silent.is_at_end());
  EXPECT_TRUE(log.wait_for("expected a handshake within 50 ms"));
}

TEST(TcpTls, AJobThatDoesNotEncryptIsFoundOut) {
  LogCapture log;
  const auto coordinator = make_coordinator();
  EXPECT_THAT(error_of<ProtocolError>([&] { encrypted_node(coordinator->address()); }),
              HasSubstr("the other side does not speak TLS 1.3"));
}

TEST(TcpTls, NothingOfWhatPassesCanBeRead) {
  const auto coordinator = encrypted_coordinator();
  Relay relay(coordinator->address());
  const Bytes message = pattern(100'000, 7);
  {
    const auto node = encrypted_node(relay.address());
    node->post(coordinator_node, data, message);
    EXPECT_EQ(coordinator->receive(node->self(), data, far_away()).payload, message);
    coordinator->post(node->self(), data, message);
    EXPECT_EQ(node->receive(coordinator_node, data, far_away()).payload, message);
  }
  const Bytes seen = relay.both();
  EXPECT_GT(seen.size(), 2 * message.size());
  for (std::size_t begin = 0; begin < message.size(); begin += 1000) {
    const auto part = message.begin() + static_cast<std::ptrdiff_t>(begin);
    EXPECT_FALSE(contains(seen, {part, part + 8})) << begin;
  }
  const auto* const key = reinterpret_cast<const std::byte*>(token.data());
  EXPECT_FALSE(contains(seen, {key, key + token.size()}));
}

TEST(TcpTls, NodesOfOneHostProveTheKeyAndThenShareMemory) {
  const auto coordinator = make_coordinator({}, /*shared_memory=*/true, encrypted);
  Relay relay(coordinator->address());
  const auto node = join_coordinator(relay.address(), token, /*shared_memory=*/true, encrypted);
  for (std::uint64_t mark = 0; mark < 20; ++mark) {
    node->post(coordinator_node, data, pattern(100'000, mark));
    EXPECT_EQ(coordinator->receive(node->self(), data, far_away()).payload, pattern(100'000, mark));
    coordinator->post(node->self(), data, pattern(100'000, ~mark));
    EXPECT_EQ(node->receive(coordinator_node, data, far_away()).payload, pattern(100'000, ~mark));
  }
  EXPECT_LT(relay.both().size(), 100'000);
}

TEST(TcpTls, ARecordedHandshakeIsWorthNothing) {
  LogCapture log;
  const auto coordinator = encrypted_coordinator();
  Relay relay(coordinator->address());
  EXPECT_EQ(encrypted_node(relay.address())->self(), NodeId{1});
  RawPeer again(coordinator->address());
  again.write(relay.sent());
  again.read_to_end();
  expect_that_a_node_can_join(*coordinator, 2);
}

TEST(TcpTls, AChangedByteEndsTheStream) {
  const auto coordinator = encrypted_coordinator();
  std::atomic<bool> changes = false;
  Relay relay(coordinator->address(), [&](Bytes& part, std::size_t /*before*/) {
    if (changes) {
      part.back() ^= std::byte{1};
    }
  });
  const auto node = encrypted_node(relay.address());
  node->post(coordinator_node, data, pattern(1000, 1));
  EXPECT_EQ(coordinator->receive(node->self(), data, far_away()).payload, pattern(1000, 1));
  changes = true;
  node->post(coordinator_node, data, pattern(1000, 2));
  EXPECT_THAT(error_of<PeerLost>([&] { coordinator->receive(node->self(), data, far_away()); }),
              HasSubstr("is lost: Bad message"));
}

/// Two sides that have shaken hands, over a pair of sockets.
struct Pair {
  explicit Pair(std::uint64_t bytes_per_key) : tls("a key that both have", bytes_per_key) {
    ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets);
    one = tls.session(sockets[0], tcp::Tls::Side::dials);
    other = tls.session(sockets[1], tcp::Tls::Side::answers);
    for (int turn = 0; turn < 3; ++turn) {
      one->shake_hands();
      other->shake_hands();
    }
  }
  ~Pair() {
    ::close(sockets[0]);
    ::close(sockets[1]);
  }

  tcp::Tls tls;
  int sockets[2]{};
  std::unique_ptr<tcp::TlsSession> one, other;
};

TEST(TcpTls, ManyBytesPassUnderManyKeys) {
  Pair pair(/*bytes_per_key=*/100'000);
  pair.other->read_ahead();
  const Bytes message = pattern(5'000'000, 3);
  Bytes got(message.size());
  std::size_t sent = 0;
  std::size_t received = 0;
  while (received < message.size()) {
    asio::error_code error;
    const auto rest = std::to_array({asio::buffer(message) + sent});
    sent += pair.one->write_some(rest, error);
    ASSERT_TRUE(!error || error == asio::error::would_block) << error.message();
    error = {};
    const auto space = std::to_array({asio::buffer(got) + received});
    received += pair.other->read_some(space, error);
    ASSERT_TRUE(!error || error == asio::error::would_block) << error.message();
  }
  EXPECT_EQ(got, message);
}

}  // namespace
}  // namespace syncopate::contract
