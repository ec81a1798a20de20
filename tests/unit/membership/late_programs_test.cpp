// Goal:   a program that takes no step for much longer than usual is reported and finally given up,
//         but not while all programs evaluate, nor for waits in collectives or for time in which it
//         was stopped.
// Method: the state machine and a membership get heartbeats with hand-made times.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "membership/program_watch.hpp"
#include "tests/unit/membership/memberships.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

constexpr NodeId waiting_one{1};
constexpr NodeId late_one{2};

wire::Heartbeat in_loop(std::uint64_t step) {
  wire::Heartbeat heartbeat;
  heartbeat.set_program_loop(true);
  heartbeat.set_computing(true);
  heartbeat.set_step(step);
  return heartbeat;
}

wire::Heartbeat waits_in_step(std::uint64_t step) {
  wire::Heartbeat heartbeat = in_loop(step);
  heartbeat.set_computing(false);
  heartbeat.set_waiting(true);
  return heartbeat;
}

/// Two programs that take four steps in `four_steps`. Then the second one stays in its loop, and
/// the first one waits for it.
class LateProgramsTest : public testing::Test {
 protected:
  void take_steps(Duration four_steps) {
    late_.joined(waiting_one, start);
    late_.joined(late_one, start);
    for (std::uint64_t step = 0; step < 4; ++step) {
      receive(in_loop(step), in_loop(step), four_steps / 4 - 250ms);
      receive(in_loop(step + 1), in_loop(step + 1), 250ms);
    }
  }

  void receive(const wire::Heartbeat& from_first, const wire::Heartbeat& from_second,
               Duration later) {
    for (Duration left = later; left > 0s; left -= 250ms) {
      now_ += std::min<Duration>(left, 250ms);
      late_.on_heartbeat(waiting_one, from_first, now_);
      late_.on_heartbeat(late_one, from_second, now_);
    }
  }

  LatePrograms late_{60s};
  TimePoint now_ = start;
};

TEST_F(LateProgramsTest, TellsOfOneAtOnceAndThenEveryMinute) {
  take_steps(2s);
  receive(waits_in_step(4), in_loop(4), 59s);
  EXPECT_TRUE(late_.take_news().empty());
  receive(waits_in_step(4), in_loop(4), 1s);
  const auto news = late_.take_news();
  ASSERT_EQ(news.size(), 1U);
  EXPECT_EQ(news[0].node, late_one);
  EXPECT_EQ(news[0].step, 4U);
  EXPECT_EQ(news[0].outside, 60s);
  EXPECT_EQ(news[0].left, 1140s);
  receive(waits_in_step(4), in_loop(4), 59s);
  EXPECT_TRUE(late_.take_news().empty());
  receive(waits_in_step(4), in_loop(4), 1s);
  EXPECT_EQ(late_.take_news().size(), 1U);
}

TEST_F(LateProgramsTest, GivesOneUpAfterTwentyTimesAsLong) {
  take_steps(2s);
  receive(waits_in_step(4), in_loop(4), 1199s);
  EXPECT_TRUE(late_.given_up().empty());
  receive(waits_in_step(4), in_loop(4), 1s);
  ASSERT_EQ(late_.given_up().size(), 1U);
  EXPECT_EQ(late_.given_up()[0].node, late_one);
}

TEST_F(LateProgramsTest, FollowsTheUsualTimeBetweenSteps) {
  take_steps(40s);  // 10 s per step; twenty times as much is 200 s
  receive(waits_in_step(4), in_loop(4), 199s);
  EXPECT_TRUE(late_.take_news().empty());
  receive(waits_in_step(4), in_loop(4), 1s);
  EXPECT_EQ(late_.take_news().size(), 1U);
}

TEST_F(LateProgramsTest, LetsAllOfThemTest) {
  take_steps(2s);
  receive(in_loop(4), in_loop(4), 3h);
  EXPECT_TRUE(late_.take_news().empty());
  EXPECT_TRUE(late_.given_up().empty());
}

TEST_F(LateProgramsTest, CountsNoWaitInACollectiveAndNoTimeAfterTheLoop) {
  take_steps(2s);
  wire::Heartbeat in_collective = in_loop(4);
  in_collective.set_program_waits(true);
  wire::Heartbeat ended = in_loop(4);
  ended.set_program_ended(true);
  receive(in_collective, ended, 3h);
  EXPECT_TRUE(late_.take_news().empty());
}

TEST_F(LateProgramsTest, CountsNoTimeInWhichAProcessWasStopped) {
  take_steps(2s);
  receive(waits_in_step(4), in_loop(4), 30s);
  now_ += 1h;
  receive(waits_in_step(4), in_loop(4), 20s);
  EXPECT_TRUE(late_.take_news().empty());
}

TEST_F(LateProgramsTest, ForgetsOneThatIsGone) {
  take_steps(2s);
  receive(waits_in_step(4), in_loop(4), 60s);
  late_.gone(late_one);
  EXPECT_TRUE(late_.take_news().empty());
}

/// The same in a membership, with programs that report progress.
TEST(Membership, TellsOfALateProgramAndEndsTheJobOnceItIsGivenUp) {
  Membership membership({.workers = 2, .evaluators = 0}, start);
  membership.joined(waiting_one, worker(0), start);
  membership.joined(late_one, worker(1), start);
  membership.arrived(waiting_one, 1);
  membership.arrived(late_one, 1);
  std::vector<std::string> notes;
  std::string end;
  std::uint64_t progress = 0;
  int seconds = 0;
  while (end.empty() && ++seconds < 2'000) {
    wire::Heartbeat late = in_loop(4);
    late.set_progress(++progress);
    membership.begin_turn(at(seconds));
    membership.on_heartbeat(waiting_one, waits_in_step(4), at(seconds));
    membership.on_heartbeat(late_one, late, at(seconds));
    for (const Decision& decision : membership.time_passed(at(seconds))) {
      if (const auto* const note = std::get_if<Note>(&decision)) {
        notes.push_back(note->text);
      } else if (std::holds_alternative<EndJob>(decision)) {
        end = std::get<EndJob>(decision).abort.reason();
        EXPECT_THAT(std::get<EndJob>(decision).abort.hung(), testing::ElementsAre(late_one.value));
      }
    }
  }
  EXPECT_EQ(end,
            "worker 1 (pid 101 on host) hangs: its program has taken no step for 1200 s since step "
            "4");
  EXPECT_EQ(notes.size(), 20U) << "from the waiting_one minute on";
  EXPECT_EQ(notes.at(0),
            "worker 1 (pid 101 on host) has taken no step for 60 s since step 4, while others wait "
            "or go on; the job goes on without it, or ends, in 1140 s");
}

}  // namespace
}  // namespace syncopate
