// Goal:   only processes that know its secret can map a shared memory segment; the segment exists
//         as long as a process holds it and is then freed; rings carry every byte in order; a
//         changed word wakes the threads that wait for it; no thread waits for a lost node.
// Method: segments, rings and nodes of this process, which maps its shared memory a second time, as
//         another process would; a child process that is killed while others hold its memory.

#include "transport/shared_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "base/errors.hpp"
#include "base/machine.hpp"
#include "base/random.hpp"
#include "collective/basic_collectives.hpp"
#include "collective/shared_allreduce.hpp"
#include "tests/contract/tcp_cluster.hpp"
#include "transport/shm/byte_ring.hpp"
#include "transport/shm/host_memory.hpp"
#include "transport/shm/segment.hpp"

namespace syncopate::contract {
namespace {

TEST(Segment, IsTheSameMemoryForEveryProcessThatOpensIt) {
  const shm::Segment made = shm::Segment::create(100'000);
  const shm::Segment opened = shm::Segment::open(made.address());
  ASSERT_EQ(opened.bytes().size(), 100'000);
  ASSERT_NE(opened.bytes().data(), made.bytes().data());
  made.bytes()[99'999] = std::byte{42};
  EXPECT_EQ(opened.bytes()[99'999], std::byte{42});
}

TEST(Segment, IsZeroAgainWhenItsMemoryWasReleased) {
  const shm::Segment segment = shm::Segment::create(3 * 4096);
  std::memset(segment.bytes().data(), 7, 3 * 4096);
  segment.release(4096, 4096);
  EXPECT_EQ(segment.bytes()[4095], std::byte{7});
  EXPECT_EQ(segment.bytes()[4096], std::byte{0});
  EXPECT_EQ(segment.bytes()[2 * 4096], std::byte{7});
}

TEST(Segment, IsNotFoundWithAnotherSecretMachineOrNumber) {
  const shm::Segment segment = shm::Segment::create(4096);
  shm::SegmentAddress address = segment.address();
  ++address.secret[1];
  EXPECT_THROW(shm::Segment::open(address), DataError);
  address = segment.address();
  address.machine += "0";
  EXPECT_THROW(shm::Segment::open(address), DataError);
  address = segment.address();
  address.descriptor = 0;
  EXPECT_THROW(shm::Segment::open(address), DataError);
}

TEST(Segment, StaysWhenItsMakerIsKilled) {
  int addresses[2];
  ASSERT_EQ(::pipe(addresses), 0);
  const pid_t maker = ::fork();
  if (maker == 0) {
    const shm::Segment segment = shm::Segment::create(4096);
    segment.bytes()[17] = std::byte{99};
    const shm::SegmentAddress address = segment.address();
    const std::uint64_t words[3] = {address.descriptor, address.secret[0], address.secret[1]};
    if (::write(addresses[1], words, sizeof words) == sizeof words) {
      ::pause();
    }
    ::kill(::getpid(), SIGKILL);
  }
  std::uint64_t words[3] = {};
  ASSERT_EQ(::read(addresses[0], words, sizeof words), ssize_t{sizeof words});
  const shm::SegmentAddress address{.machine = machine_identity(),
                                    .pid = static_cast<std::uint32_t>(maker),
                                    .descriptor = static_cast<std::uint32_t>(words[0]),
                                    .secret = {words[1], words[2]}};
  const shm::Segment held = shm::Segment::open(address);
  ::kill(maker, SIGKILL);
  ::waitpid(maker, nullptr, 0);
  EXPECT_EQ(held.bytes()[17], std::byte{99});
  EXPECT_THROW(shm::Segment::open(address), DataError);
  ::close(addresses[0]);
  ::close(addresses[1]);
}

TEST(Segment, SaysWhatALimitOnFilesLeavesNoRoomFor) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 1'000'000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  std::string message;
  try {
    shm::Segment::create(2'000'000);
  } catch (const DataError& error) {
    message = error.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(message,
            "shared memory needs files of 2004096 bytes, and the limit of this process (ulimit -f) "
            "is 1000000");
}

TEST(Arena, GivesOutWholePagesAndJoinsWhatComesBack) {
  shm::Arena arena(5 * shm::Arena::page);
  const auto first = arena.take(1);
  const auto second = arena.take(2 * shm::Arena::page);
  const auto third = arena.take(shm::Arena::page + 1);
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, shm::Arena::page);
  EXPECT_EQ(third, 3 * shm::Arena::page);
  EXPECT_EQ(arena.take(1), std::nullopt);
  arena.give_back(*first, 1);
  arena.give_back(*third, shm::Arena::page + 1);
  EXPECT_EQ(arena.take(3 * shm::Arena::page), std::nullopt);
  arena.give_back(*second, 2 * shm::Arena::page);
  EXPECT_EQ(arena.take(5 * shm::Arena::page), 0);
}

TEST(Ring, CarriesEveryByteInOrder) {
  constexpr std::uint64_t seed = 3;
  constexpr std::size_t total = 20'000'000;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  shm::Duplex here = shm::Duplex::create();
  shm::Duplex there = shm::Duplex::open(here.address());
  const auto byte_at = [](std::size_t place) { return static_cast<std::byte>(place * 31 % 251); };
  std::thread writer([&] {
    Random random = Random(seed).fork("writer", 0);
    std::vector<std::byte> piece;
    for (std::size_t at = 0; at < total;) {
      piece.resize(std::min<std::size_t>(1 + random.below(300'000), total - at));
      for (std::size_t i = 0; i < piece.size(); ++i) {
        piece[i] = byte_at(at + i);
      }
      for (std::span<const std::byte> rest = piece; !rest.empty();) {
        rest = rest.subspan(here.outgoing().write(rest));
      }
      at += piece.size();
    }
  });
  Random random = Random(seed).fork("reader", 0);
  std::vector<std::byte> piece(300'000);
  std::size_t wrong = 0;
  for (std::size_t at = 0; at < total;) {
    const std::size_t bytes =
        there.incoming().read(std::span(piece).first(1 + random.below(piece.size())));
    for (std::size_t i = 0; i < bytes; ++i) {
      wrong += piece[i] == byte_at(at + i) ? 0 : 1;
    }
    at += bytes;
  }
  writer.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Ring, TellsASleeperOnceThatItMustBeWoken) {
  shm::Duplex here = shm::Duplex::create();
  shm::Duplex there = shm::Duplex::open(here.address());
  const std::vector<std::byte> message(10);
  EXPECT_TRUE(there.incoming().await_bytes());
  here.outgoing().write(message);
  EXPECT_TRUE(here.outgoing().must_wake_reader());
  EXPECT_FALSE(here.outgoing().must_wake_reader());
  EXPECT_FALSE(there.incoming().await_bytes()) << "there is something to read";
  const std::vector<std::byte> much(shm::Duplex::capacity);
  EXPECT_EQ(here.outgoing().write(much), shm::Duplex::capacity - 10);
  EXPECT_TRUE(here.outgoing().await_room());
  std::vector<std::byte> into(5);
  there.incoming().read(into);
  EXPECT_TRUE(there.incoming().must_wake_writer());
}

shm::HostMemory::Check nobody_is_lost() {
  return [](NodeId) {};
}

TEST(HostMemory, IsReachedByPlace) {
  shm::HostMemory one(nobody_is_lost());
  shm::HostMemory other(nobody_is_lost());
  other.introduce(NodeId{1}, one.address());
  ASSERT_TRUE(other.reaches(NodeId{1}));
  EXPECT_FALSE(other.reaches(NodeId{2}));
  const auto memory = one.allocate(10'000);
  const auto place = one.offset_of({memory.get(), 10'000});
  ASSERT_TRUE(place);
  EXPECT_EQ(other.offset_of({memory.get(), 10'000}), std::nullopt);
  memory.get()[9'999] = std::byte{5};
  EXPECT_EQ(other.at(NodeId{1}, *place, 10'000)[9'999], std::byte{5});
  EXPECT_THROW(other.at(NodeId{1}, *place, std::size_t{1} << 60), ProtocolError);
}

TEST(HostMemory, WakesAWaiterAndGivesUpOnTheLost) {
  bool lost = false;
  std::mutex mutex;
  shm::HostMemory memory([&](NodeId node) {
    const std::lock_guard lock(mutex);
    if (lost) {
      throw PeerLost(node, "node 1 is lost");
    }
  });
  const auto block = memory.allocate(sizeof(SharedWord));
  SharedWord& word = *reinterpret_cast<SharedWord*>(block.get());
  std::thread waiter([&] { memory.wait(NodeId{1}, word, 3, far_away()); });
  memory.set(word, 1);
  memory.set(word, 3);
  waiter.join();
  EXPECT_THROW(memory.wait(NodeId{1}, word, 4, steady_now()), TimedOut);
  std::thread bereft([&] { EXPECT_THROW(memory.wait(NodeId{1}, word, 4, far_away()), PeerLost); });
  {
    const std::lock_guard lock(mutex);
    lost = true;
  }
  bereft.join();
  memory.wait(NodeId{1}, word, 3, far_away());  // the word had this value before the loss
}

TEST(TcpSharedMemory, IsLentByNobodyWhereTheHubLendsNone) {
  for (const bool coordinator_shares : {true, false}) {
    const auto coordinator = make_coordinator({}, coordinator_shares);
    const auto node = join_coordinator(coordinator->address());
    EXPECT_EQ(node->shared_memory() != nullptr, coordinator_shares);
  }
}

TEST(SharedAllreduceOnThreads, IsExactInTenThousandRoundsWithMoreRanksThanCores) {
  const std::uint32_t size = 2 * std::max(2U, std::thread::hardware_concurrency()) + 1;
  constexpr std::size_t most = 20'000;
  constexpr int rounds = 10'000;
  TcpCluster cluster(true);
  cluster.run(size, Introductions::everyone, [&](World& world) {
    Group::Options options{.members = {}, .self = Rank{world.transport().self().value}};
    for (std::uint32_t node = 0; node < size; ++node) {
      options.members.push_back(NodeId{node});
    }
    Group group(world, std::move(options));
    const auto shared = SharedAllreduce::make(group);
    ASSERT_NE(shared, nullptr);
    const auto memory = make_values(world.transport().shared_memory(), most);
    for (int round = 0; round < rounds; ++round) {
      const std::size_t length = round % 50 == 0 ? most : 1 + static_cast<std::size_t>(round % 40);
      const std::span<float> values(memory.get(), length);
      std::fill(values.begin(), values.end(), static_cast<float>(group.rank().value + round % 100));
      shared->reduce({.values = values});
      const std::uint32_t sum =
          size * static_cast<std::uint32_t>(round % 100) + size * (size - 1) / 2;
      ASSERT_EQ(values.front(), static_cast<float>(sum)) << "round " << round;
      ASSERT_EQ(values.back(), static_cast<float>(sum)) << "round " << round;
    }
    barrier(group);
  });
}

}  // namespace
}  // namespace syncopate::contract
