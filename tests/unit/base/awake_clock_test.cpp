// Goal:   the clock of a process stops while the process is suspended, and at no other time.
// Method: a time source that the test advances; readings are compared with values worked out by
//         hand.

#include "base/awake_clock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace syncopate {
namespace {

using namespace std::chrono_literals;

Duration
    source;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): a Source has no state

Duration read_source() {
  return source;
}

class AwakeClockTest : public testing::Test {
 protected:
  AwakeClockTest() { source = 1h; }

  /// Advances the source by `duration` and calls `beat` every 100 ms.
  void beat_for(Duration duration) {
    for (const Duration end = source + duration; source < end; source += 100ms) {
      clock_.beat();
    }
  }

  AwakeClock clock_{read_source, 1s};
};

TEST_F(AwakeClockTest, FollowsItsSourceWithoutBeats) {
  EXPECT_EQ(clock_.now(), 1h);
  source = 3h;
  EXPECT_EQ(clock_.now(), 3h);
}

TEST_F(AwakeClockTest, FollowsItsSourceWhileBeatsCome) {
  beat_for(10s);
  EXPECT_EQ(clock_.now(), 1h + 10s);
  source += 900ms;
  clock_.beat();
  EXPECT_EQ(clock_.now(), 1h + 10900ms) << "a second after the last beat";
}

TEST_F(AwakeClockTest, StandsStillWithoutABeatAndGoesOnWithTheNext) {
  clock_.beat();
  source += 1h;
  EXPECT_EQ(clock_.now(), 1h + 1s) << "a reader that runs before the task that beats";
  clock_.beat();
  EXPECT_EQ(clock_.now(), 1h + 1s);
  source += 700ms;
  EXPECT_EQ(clock_.now(), 1h + 1700ms);
}

TEST_F(AwakeClockTest, GoesOnWhileItIsReadThoughTheTaskThatBeatsIsStopped) {
  clock_.beat();
  for (int reading = 1; reading <= 100; ++reading) {
    source += 900ms;
    ASSERT_EQ(clock_.now(), 1h + reading * 900ms);
  }
  source += 1h;
  EXPECT_EQ(clock_.now(), 1h + 91s) << "stopped with all its threads";
  EXPECT_EQ(clock_.now(), 1h + 91s) << "until the task beats";
  clock_.beat();
  source += 500ms;
  EXPECT_EQ(clock_.now(), 1h + 91500ms);
}

TEST_F(AwakeClockTest, NeverRunsBackwardsUnderManyReaders) {
  static std::atomic<Duration::rep> passed = 0;
  AwakeClock clock([] { return Duration(passed += 20'000); }, 1ms);  // each reading takes 20 us
  std::atomic<bool> done = false;
  std::vector<std::jthread> readers;
  for (int reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&] {
      for (Duration last{}; !done;) {
        const Duration now = clock.now();
        ASSERT_GE(now, last);
        last = now;
      }
    });
  }
  for (int beat = 0; beat < 20'000; ++beat) {
    clock.beat();
  }
  done = true;
}

TEST_F(AwakeClockTest, ForgetsNoneOfSeveralSuspensions) {
  for (int time = 1; time <= 5; ++time) {
    beat_for(2s);
    source += 60s - 100ms;
    EXPECT_EQ(clock_.now(), 1h + time * 2900ms) << time;
  }
}

TEST_F(AwakeClockTest, GoesOnWhenTheBeatsEnd) {
  clock_.beat();
  source += 61s;
  clock_.end_beats();
  EXPECT_EQ(clock_.now(), 1h + 1s);
  source += 1h;
  EXPECT_EQ(clock_.now(), 2h + 1s);
  clock_.beat();
  EXPECT_EQ(clock_.now(), 2h + 1s);
}

}  // namespace
}  // namespace syncopate
