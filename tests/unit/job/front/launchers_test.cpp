// Goal:   a coordinator knows which programs of each host have ended, and refuses launchers whose
//         programs do not fit the job.
// Method: launchers of a job of five programs, two of which start on the coordinator's host.
#include "job/program/launchers.hpp"

#include <gmock/gmock.h>

#include "base/errors.hpp"

namespace syncopate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr NodeId second_host{7};
constexpr NodeId third_host{8};

wire::LauncherHello hello(std::uint32_t first, std::uint32_t count, std::uint32_t size = 5) {
  wire::LauncherHello hello;
  hello.set_first(first);
  hello.set_count(count);
  hello.set_size(size);
  hello.set_host("node2");
  return hello;
}

wire::ProgramEnded end_of(std::uint32_t rank, int wait_status) {
  wire::ProgramEnded end;
  end.set_rank(rank);
  end.set_wait_status(wait_status);
  return end;
}

class LaunchersTest : public testing::Test {
 protected:
  std::string refusal_of(const wire::LauncherHello& hello) {
    try {
      launchers_.joined(third_host, hello);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "it was not refused";
  }

  Launchers launchers_{5, {.first = 0, .count = 2}};
};

TEST_F(LaunchersTest, AllProgramsHaveEndedOnceThoseOfEachLauncherThatCameHave) {
  launchers_.ended(0, 0);
  EXPECT_FALSE(launchers_.all_ended());
  launchers_.ended(1, 0);
  EXPECT_TRUE(launchers_.all_ended()) << "no other host has come";
  launchers_.joined(second_host, hello(2, 3));
  EXPECT_FALSE(launchers_.all_ended());
  for (std::uint32_t rank = 2; rank < 5; ++rank) {
    launchers_.ended(second_host, end_of(rank, 3 << 8));
  }
  EXPECT_TRUE(launchers_.all_ended());
  EXPECT_EQ(launchers_.ends().at(4), "ended with exit status 3");
}

TEST_F(LaunchersTest, ALostLauncherTakesItsProgramsWithIt) {
  launchers_.joined(second_host, hello(3, 2));
  launchers_.ended(second_host, end_of(3, 9));
  launchers_.lost(second_host);
  launchers_.lost(third_host);
  EXPECT_THAT(launchers_.ends(), ElementsAre(Pair(3U, HasSubstr("was killed by signal 9")),
                                             Pair(4U, "was lost with `syncopate run` on node2")));
  EXPECT_EQ(refusal_of(hello(3, 2)), "it was not refused") << "another one takes its place";
}

TEST_F(LaunchersTest, TheFirstFailureIsThatOfTheJob) {
  launchers_.joined(second_host, hello(2, 2));
  launchers_.ended(0, 0);
  EXPECT_EQ(launchers_.failure(), "");
  launchers_.ended(second_host, end_of(3, 5 << 8));
  launchers_.ended(1, 9);
  launchers_.lost(second_host);
  EXPECT_EQ(launchers_.failure(), "worker 3 ended with exit status 5");
  Launchers of_one_host(2, {.first = 0, .count = 2});
  of_one_host.ended(1, 9);
  EXPECT_EQ(of_one_host.failure(), "") << "the supervisor sees it";
}

TEST_F(LaunchersTest, KnowsWhichProgramsNoHostStarts) {
  EXPECT_THAT(launchers_.missing(), ElementsAre(2, 3, 4));
  launchers_.joined(second_host, hello(3, 1));
  EXPECT_THAT(launchers_.missing(), ElementsAre(2, 4));
}

TEST_F(LaunchersTest, RefusesProgramsThatDoNotFit) {
  launchers_.joined(second_host, hello(2, 2));
  EXPECT_THAT(refusal_of(hello(4, 1, 6)), HasSubstr("this job has 5 workers"));
  EXPECT_THAT(refusal_of(hello(4, 2)), HasSubstr("a launcher of 2 from rank 4 of 5"));
  EXPECT_THAT(refusal_of(hello(4, 0)), HasSubstr("a launcher of 0"));
  EXPECT_THAT(refusal_of(hello(3, 2)),
              HasSubstr("workers from 3 to 4 are started on another host"));
  EXPECT_THAT(refusal_of(hello(1, 1)), HasSubstr("workers from 1 to 1"));
  EXPECT_THROW(launchers_.ended(second_host, end_of(4, 0)), ProtocolError);
  EXPECT_THROW(launchers_.ended(third_host, end_of(4, 0)), ProtocolError);
}

}  // namespace
}  // namespace syncopate
