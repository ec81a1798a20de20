// Goal:   if several ranks refuse their input, rank 0 reports the error first, without a prefix;
//         another rank reports an error of its own with its number. Only MPICH's launcher gets a
//         request to end the other ranks.
// Method: bodies that throw, without a wait; a pair of sockets in place of the launcher.

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <map>

#include "base/errors.hpp"
#include "job/launch/descriptor.hpp"
#include "job/launch/exit_status.hpp"

namespace syncopate {
namespace {

using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;
using Variables = std::map<std::string, std::string>;

struct Ended {
  int status = 0;
  std::string said;
};

template <class ErrorKind>
Ended refused_by(std::uint32_t rank) {
  CaptureStderr();
  const int status = guarded_rank(
      {.launcher = "somebody", .rank = rank, .size = 4, .job = "job"},
      []() -> int { throw ErrorKind("no such thing"); }, Duration::zero());
  return {status, GetCapturedStderr()};
}

/// Ends all ranks and returns the text that the launcher of this environment receives. `PMI_FD`
/// names its socket unless `environment` sets it.
std::string read_by_launcher(Variables environment) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  Descriptor rank(ends[0]);
  const Descriptor launcher(ends[1]);
  environment.emplace("PMI_FD", std::to_string(rank.get()));
  end_all_ranks([&](const char* name) { return environment[name]; }, 2);
  rank.close();
  std::array<char, 100> text{};
  const auto length = ::read(launcher.get(), text.data(), text.size());
  return {text.data(), static_cast<std::size_t>(length)};
}

TEST(RankEnd, RankZeroSpeaksForAll) {
  const Ended ended = refused_by<ConfigError>(0);
  EXPECT_EQ(ended.status, exit_status::refused);
  EXPECT_EQ(ended.said, "syncopate: no such thing\n");
}

TEST(RankEnd, AnotherRankGivesItsNumber) {
  const Ended ended = refused_by<DataError>(3);
  EXPECT_EQ(ended.status, exit_status::refused);
  EXPECT_EQ(ended.said, "syncopate: rank 3: no such thing\n");
  EXPECT_EQ(refused_by<TimedOut>(2).status, exit_status::failure);
}

TEST(RankEnd, AStatusIsPassedOn) {
  for (const std::uint32_t rank : {0U, 1U}) {
    EXPECT_EQ(guarded_rank({.launcher = "somebody", .rank = rank, .size = 2, .job = "job"},
                           [] { return 130; }),
              130);
  }
}

TEST(RankEnd, MpichIsToldToEndAll) {
  EXPECT_EQ(read_by_launcher({{"HYDI_CONTROL_FD", "7"}}), "cmd=abort exitcode=2\n");
}

TEST(RankEnd, OthersAreNotTold) {
  EXPECT_EQ(read_by_launcher({}), "") << "srun speaks another PMI";
  EXPECT_EQ(read_by_launcher({{"HYDI_CONTROL_FD", "7"}, {"PMI_FD", ""}}), "");
  EXPECT_EQ(read_by_launcher({{"HYDI_CONTROL_FD", "7"}, {"PMI_FD", "3x"}}), "");
}

}  // namespace
}  // namespace syncopate
