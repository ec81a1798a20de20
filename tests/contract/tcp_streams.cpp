// Goal:   streams survive a peer that is killed in the middle of a message, a node that receives
//         nothing, and a lack of descriptors; no descriptor is leaked.
// Method: a child process acts as a node on a raw socket and dies by SIGKILL after an exact number
//         of bytes; limits are set low; the open descriptors of this process are listed before and
//         after.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "base/errors.hpp"
#include "tests/contract/payload.hpp"
#include "tests/contract/raw_peer.hpp"
#include "tests/contract/tcp_cluster.hpp"
#include "tests/support/log_capture.hpp"
#include "transport/tags.hpp"

namespace syncopate::contract {
namespace {

constexpr Tag data = tags::allgather;
constexpr Tag other = tags::broadcast;
constexpr std::size_t large = 40'000'000;

/// A process that joins the coordinator at `listener`, calls `act`, and dies by SIGKILL. Make it
/// while this process has one thread, before the coordinator exists: it is forked.
class DoomedNode {
 public:
  DoomedNode(const Descriptor& listener, const std::function<void(RawPeer&)>& act)
      : process_(::fork()) {
    if (process_ == 0) {
      RawPeer peer(address_of(listener));
      wire::Hello hello;
      hello.set_token(token);
      hello.set_address("127.0.0.1:1");
      peer.greet(hello);
      act(peer);
      ::raise(SIGKILL);
    }
  }
  DoomedNode(const DoomedNode&) = delete;
  DoomedNode& operator=(const DoomedNode&) = delete;
  ~DoomedNode() {
    int status = 0;
    ::waitpid(process_, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "status " << status;
  }

 private:
  pid_t process_;
};

Descriptor listening_socket() {
  Descriptor socket = bound_socket();
  ::listen(socket.get(), 16);
  return socket;
}

std::unique_ptr<TcpTransport> coordinator_at(Descriptor listener) {
  return TcpTransport::listen({.token = token, .descriptor = listener.release()});
}

std::set<int> open_descriptors() {
  std::set<int> numbers;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    numbers.insert(std::stoi(entry.path().filename()));
  }
  // The listing contains the descriptor that read the folder, which is closed by now.
  std::erase_if(numbers, [](int number) { return ::fcntl(number, F_GETFD) < 0; });
  return numbers;
}

TEST(TcpStreams, ASenderKilledInTheMiddleOfAMessageIsLost) {
  Descriptor listener = listening_socket();
  const DoomedNode doomed(listener, [](RawPeer& peer) {
    peer.write(wire::encode(wire::FrameHeader{wire::FrameKind::message, other.value, 3}));
    peer.write(std::vector<std::byte>(3));
    peer.write(wire::encode(wire::FrameHeader{wire::FrameKind::message, data.value, large}));
    peer.write(std::vector<std::byte>(large / 2));
  });
  const auto coordinator = coordinator_at(std::move(listener));
  EXPECT_EQ(coordinator->receive(std::nullopt, other, far_away()).payload.size(), 3);
  std::vector<std::byte> into(large);
  const auto receive = coordinator->start_receive(NodeId{1}, data, into);
  EXPECT_THROW(receive->wait(far_away()), PeerLost);
  EXPECT_THROW(coordinator->receive(std::nullopt, data, far_away()), PeerLost);

  const auto survivor = join_coordinator(coordinator->address());
  survivor->post(coordinator_node, data, {});
  EXPECT_EQ(coordinator->receive(std::nullopt, data, far_away()).from, NodeId{2});
}

TEST(TcpStreams, AReceiverKilledInTheMiddleOfAMessageIsLost) {
  // More than the kernel buffers for a process that has died.
  const std::vector<std::byte> payload(10 * large);
  Descriptor listener = listening_socket();
  const DoomedNode doomed(listener, [](RawPeer& peer) {
    peer.write(wire::encode(wire::FrameHeader{wire::FrameKind::message, other.value, 0}));
    peer.read(large / 2);
  });
  const auto coordinator = coordinator_at(std::move(listener));
  coordinator->receive(std::nullopt, other, far_away());
  const auto sending = coordinator->start_send(NodeId{1}, data, payload);
  EXPECT_THROW(sending->wait(far_away()), PeerLost);
  EXPECT_THROW(coordinator->receive(NodeId{1}, data, far_away()), PeerLost);
}

TEST(TcpStreams, AnAwaitedMessageComesThroughBehindUnclaimedOnes) {
  constexpr std::uint64_t count = 50;
  const auto coordinator = make_coordinator({.unclaimed_limit = 1'000'000});
  const auto node = join_coordinator(coordinator->address());
  for (std::uint64_t number = 0; number < count; ++number) {
    node->post(coordinator_node, other, pattern(1'000'000, number));
  }
  node->post(coordinator_node, data, pattern(10, 1));
  EXPECT_EQ(coordinator->receive(node->self(), data, far_away()).payload, pattern(10, 1));
  for (std::uint64_t number = 0; number < count; ++number) {
    const Message message = coordinator->receive(std::nullopt, other, far_away());
    ASSERT_TRUE(message.payload == pattern(1'000'000, number)) << "message " << number;
  }
}

TEST(TcpStreams, ANodeThatTakesNothingStopsItsPeer) {
  // Far more than the kernel's buffers and the limit allow together.
  const std::vector<std::byte> payload(20'000'000);
  const auto coordinator = make_coordinator({.unclaimed_limit = 1'000'000});
  const auto node = join_coordinator(coordinator->address());
  std::vector<std::unique_ptr<Transfer>> sends;
  for (int number = 0; number < 20; ++number) {
    sends.push_back(node->start_send(coordinator_node, data, payload));
  }
  EXPECT_THROW(sends.back()->wait(steady_now() + std::chrono::milliseconds(500)), TimedOut);
}

TEST(TcpStreams, AMessageLargerThanTheLimitIsRefused) {
  const auto coordinator = make_coordinator({.message_bytes = 1000});
  const auto node = join_coordinator(coordinator->address());
  node->post(coordinator_node, data, std::vector<std::byte>(1000));
  node->post(coordinator_node, data, std::vector<std::byte>(1001));
  EXPECT_EQ(coordinator->receive(node->self(), data, far_away()).payload.size(), 1000);
  try {
    coordinator->receive(node->self(), data, far_away());
    ADD_FAILURE() << "a message over the limit was received";
  } catch (const PeerLost& loss) {
    EXPECT_THAT(loss.what(), testing::HasSubstr("at most 1000 bytes, found 1001"));
  }
}

TEST(TcpStreams, ClosingAndDestroyingLeaveNoDescriptor) {
  const std::set<int> before = open_descriptors();
  for (int cycle = 0; cycle < 100; ++cycle) {
    const auto coordinator = make_coordinator();
    const auto node = join_coordinator(coordinator->address());
    const RawPeer silent(coordinator->address());
    node->post(coordinator_node, data, {});
    coordinator->receive(std::nullopt, data, far_away());
    if (cycle % 2 == 0) {
      node->close(far_away());
      coordinator->close(far_away());
    }
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(TcpStreams, NoDescriptorIsInherited) {
  const std::set<int> before = open_descriptors();
  Descriptor listener = listening_socket();
  const auto coordinator = coordinator_at(std::move(listener));
  const auto one = join_coordinator(coordinator->address());
  const auto two = join_coordinator(coordinator->address());
  two->introduce(one->self(), one->address());
  two->post(one->self(), data, {});
  one->receive(std::nullopt, data, far_away());
  const std::set<int> now = open_descriptors();
  EXPECT_GE(now.size(), before.size() + 9) << "three listeners and six ends of streams";
  for (const int number : now) {
    if (!before.contains(number)) {
      EXPECT_EQ(::fcntl(number, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC) << "descriptor " << number;
    }
  }
}

/// Limits this process, until the end of the scope, to about `count` more descriptors.
class Fewer {
 public:
  explicit Fewer(std::size_t count) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const Descriptor lowest_free(::dup(0));
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(lowest_free.get()) + count;
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  Fewer(const Fewer&) = delete;
  Fewer& operator=(const Fewer&) = delete;
  ~Fewer() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

/// A forked process, as a data loader starts one, that lives until the end of the scope.
class ForkedChild {
 public:
  ForkedChild() : process_(::fork()) {
    while (process_ == 0) {
      ::pause();
    }
  }
  ForkedChild(const ForkedChild&) = delete;
  ForkedChild& operator=(const ForkedChild&) = delete;
  ~ForkedChild() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }

 private:
  pid_t process_;
};

TEST(TcpStreams, AForkedProcessHoldsUpNoEnd) {
  const auto coordinator = make_coordinator();
  RawPeer peer(coordinator->address());
  wire::Hello hello;
  hello.set_token(token);
  hello.set_address("127.0.0.1:1");
  peer.greet(hello);
  peer.write(wire::encode(wire::FrameHeader{wire::FrameKind::message, data.value, 0}));
  coordinator->receive(std::nullopt, data, far_away());
  const ForkedChild holds_the_streams;
  peer.finish_writing();
  peer.read_to_end();  // throws if the end does not come
  EXPECT_THROW(coordinator->receive(NodeId{1}, data, far_away()), PeerLost);
}

TEST(TcpStreams, ALackOfDescriptorsIsSurvived) {
  LogCapture log;
  const auto coordinator = make_coordinator();
  std::optional<RawPeer> peer;
  {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
    const Fewer none(0);
    peer.emplace(std::move(socket), coordinator->address());
    EXPECT_TRUE(log.wait_for("cannot accept a connection at " + coordinator->address() +
                             ": Too many open files, raise the limit on them (ulimit -n); trying "
                             "again"));
  }
  wire::Hello hello;
  hello.set_token(token);
  hello.set_address("127.0.0.1:1");
  EXPECT_EQ(peer->greet(hello).you(), 1);
}

TEST(TcpStreams, SilentConnectionsLeaveDescriptorsToTheProcess) {
  constexpr std::size_t reserved = 16;
  LogCapture log;
  const auto coordinator = make_coordinator({.handshake_timeout = std::chrono::hours(1)});
  std::vector<Descriptor> sockets;
  for (int number = 0; number < 41; ++number) {
    sockets.emplace_back(::socket(AF_INET, SOCK_STREAM, 0));
  }
  const Fewer limit(reserved + 4);
  std::vector<RawPeer> silent;
  for (Descriptor& socket : sockets) {
    silent.emplace_back(std::move(socket), coordinator->address());
  }
  for (std::size_t number = 0; number + 4 < silent.size(); ++number) {
    EXPECT_TRUE(silent.at(number).is_at_end()) << "connection " << number;
  }
  std::vector<Descriptor> own;
  for (std::size_t number = 0; number + 1 < reserved; ++number) {
    own.emplace_back(::dup(0));
  }
  wire::Hello hello;
  hello.set_token(token);
  hello.set_address("127.0.0.1:1");
  EXPECT_EQ(silent.back().greet(hello).you(), 1);
}

TEST(TcpStreams, WithoutADescriptorTheOldestSilentConnectionMakesRoom) {
  LogCapture log;
  const auto coordinator = make_coordinator({.handshake_timeout = std::chrono::hours(1)});
  RawPeer silent(coordinator->address());
  RawPeer node(coordinator->address());
  wire::Hello hello;
  hello.set_token(token);
  hello.set_address("127.0.0.1:1");
  EXPECT_EQ(node.greet(hello).you(), 1) << "so the silent one has been accepted, too";
  Descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  const Fewer none(0);
  RawPeer next(std::move(socket), coordinator->address());
  EXPECT_TRUE(silent.is_at_end());
  EXPECT_EQ(next.greet(hello).you(), 2);
  EXPECT_EQ(log.text(), "");
}

TEST(TcpStreams, NothingIsKeptOfLostPeers) {
  const auto mappings = [] {
    std::ifstream maps("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);) {
      count += line.find("memfd:syncopate") != std::string::npos ? 1 : 0;
    }
    return count;
  };
  const auto coordinator = make_coordinator();
  const std::size_t before = mappings();
  for (std::uint32_t number = 1; number <= 10; ++number) {
    const auto node = join_coordinator(coordinator->address());
    node->post(coordinator_node, data, {});
    coordinator->receive(NodeId{number}, data, far_away());
    EXPECT_GT(mappings(), before);
    node->close(far_away());
    EXPECT_THROW(coordinator->receive(NodeId{number}, data, far_away()), PeerLost);
  }
  coordinator->close(far_away());  // waits until the engine has ended
  EXPECT_EQ(mappings(), before);
}

TEST(TcpStreams, ACoordinatorTakesControlMessagesAlone) {
  LogCapture log;
  const auto coordinator = TcpTransport::listen(
      {.token = token, .control_only = true, .limits = {.unclaimed_limit = 1000}});
  const auto node = join_coordinator(coordinator->address());
  node->post(coordinator_node, data, pattern(100'000, 1));
  node->post(coordinator_node, tags::to_coordinator, pattern(10, 2));
  const Message message = coordinator->receive(std::nullopt, tags::to_coordinator, far_away());
  EXPECT_EQ(message.payload, pattern(10, 2));
  EXPECT_THAT(log.text(), testing::HasSubstr("dropped a message of node 1 under tag 16"));
}

}  // namespace
}  // namespace syncopate::contract
