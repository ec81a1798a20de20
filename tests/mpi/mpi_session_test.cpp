// Goal:   a session knows its ranks and hosts, reduces over the ranks that take part, and refuses
//         nodes of other jobs.
// Method: the test compares the ranks and hosts with those of the launcher, and reduced values with
//         a closed formula; one rank takes no part, and the others must time out.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "base/errors.hpp"
#include "tests/mpi/mpi_cluster.hpp"
#include "transport/mpi/packet.hpp"
#include "transport/steady_time.hpp"
#include "transport/transport.hpp"

namespace syncopate::contract {
namespace {

TimePoint far_away() {
  return steady_now() + std::chrono::minutes(2);
}

/// Waits until node 0 listens, and counts the node that each rank then makes.
void all_will_join() {
  home().session->barrier(far_away());
  for (std::uint32_t& joined : home().joined) {
    ++joined;
  }
}

/// Waits until all ranks no longer need node 0, and ends it: the next test makes another one.
void leave(std::unique_ptr<Transport> coordinator) {
  home().session->barrier(far_away());
  coordinator.reset();
  home().session->barrier(far_away());
}

TEST(MpiSite, IsReadAsItIsWritten) {
  EXPECT_EQ(mpi::parse_site("mpi:3.1"), (mpi::Site{3, 1}));
  EXPECT_EQ(mpi::to_string({70'000, 65'535}), "mpi:70000.65535");
  for (const char* const text : {"", "mpi:", "mpi:3", "mpi:3.", "mpi:.1", "mpi:3.1x", "mpi:3.65536",
                                 "tcp:3.1", "mpi:-1.0", "127.0.0.1:9091"}) {
    EXPECT_THROW(mpi::parse_site(text), ConfigError) << text;
  }
}

TEST(MpiSession, KnowsItsRanksAndThatTheyShareAHost) {
  const mpi::Session& session = *home().session;
  EXPECT_LT(session.rank(), session.size());
  EXPECT_THAT(session.hosts(), testing::AllOf(testing::SizeIs(session.size()), testing::Each(0)));
  EXPECT_THAT(session.library(), testing::MatchesRegex("(Open MPI|MPICH) [0-9.]+"));
}

TEST(MpiSession, SaysWhichModuleIsMissing) {
  std::string message;
  try {
    mpi::start(mpi::Library::mpich,
               {.expected_size = 1, .allreduce = false, .modules = "/nowhere"});
  } catch (const ConfigError& error) {
    message = error.what();
  }
  EXPECT_EQ(
      message,
      "expected the module for MPICH, syncopate-mpi-mpich.so, in /nowhere, found none: install "
      "libmpich-dev (Debian's name) and build Syncopate again");
}

TEST(MpiSession, NodeZeroRefusesAWrongTokenAndIsOnRankZero) {
  mpi::Session& session = *home().session;
  std::unique_ptr<Transport> coordinator;
  if (session.rank() == 0) {
    coordinator = session.listen({.token = "right"});
    EXPECT_THROW(session.listen({.token = "right"}), InternalError) << "there is one already";
  } else {
    EXPECT_THROW(session.listen({.token = "right"}), InternalError);
  }
  all_will_join();
  EXPECT_THROW(session.join({.token = "wrong"}), ConfigError);
  leave(std::move(coordinator));
}

TEST(MpiAllreduce, AreExactOnEveryRank) {
  mpi::Session& session = *home().session;
  std::unique_ptr<Transport> coordinator =
      session.rank() == 0 ? session.listen({.token = "t"}) : nullptr;
  all_will_join();
  const auto node = session.join({.token = "t"});
  NativeAllreduce* const native = node->native_allreduce();
  ASSERT_NE(native, nullptr);
  EXPECT_EQ(native->size(), session.size());
  const auto ranks = static_cast<float>(session.size());
  for (const std::size_t size : {0, 1, 17, 1000, 300'000, 3'000'000}) {
    std::vector<float> values(size);
    for (std::size_t i = 0; i < size; ++i) {
      values[i] = static_cast<float>((session.rank() + 1) * (i % 97 + 1));
    }
    native->allreduce(values, far_away());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < size; ++i) {
      wrong += values[i] != ranks * (ranks + 1) / 2 * static_cast<float>(i % 97 + 1) ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0) << size;
  }
  leave(std::move(coordinator));
}

TEST(MpiAllreduce, CanBeWaitedForAgainWhenARankIsLate) {
  mpi::Session& session = *home().session;
  std::unique_ptr<Transport> coordinator =
      session.rank() == 0 ? session.listen({.token = "t"}) : nullptr;
  all_will_join();
  const auto node = session.join({.token = "t"});
  NativeAllreduce& native = *node->native_allreduce();
  std::vector<float> values(1000, 1.0F);
  if (session.rank() > 0) {
    const TimePoint deadline = steady_now() + std::chrono::milliseconds(20);
    EXPECT_THROW(native.allreduce(values, deadline), TimedOut);
    EXPECT_GE(steady_now(), deadline);
    EXPECT_THAT(values, testing::Each(1.0F)) << "untouched";
  }
  session.barrier(far_away());  // rank 0 calls the allreduce only after this barrier
  native.allreduce(values, far_away());
  EXPECT_THAT(values, testing::Each(static_cast<float>(session.size())));
  leave(std::move(coordinator));
}

}  // namespace
}  // namespace syncopate::contract
