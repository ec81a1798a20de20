// Goal:   the adaptive limit is the floor until waits are known, then many times their median. A
//         long wait is reported, continues for as long as the arbiter allows, and ends at its limit
//         without an arbiter; a check during the wait may end it.
// Method: fixed values; waits on a clock that the waits move forward, with a scripted arbiter.

#include "runtime/waits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

TEST(AdaptiveLimit, IsTheFloorBeforeTheFirstObservation) {
  const AdaptiveLimit limit({.floor = 7s, .factor = 20, .window = 4});
  EXPECT_EQ(limit.limit(), 7s);
  EXPECT_EQ(limit.median(), 0s);
}

TEST(AdaptiveLimit, FollowsTheMedianAndNotOneOutage) {
  AdaptiveLimit limit({.floor = 1s, .factor = 10, .window = 5});
  for (const Duration wait :
       {Duration(2s), Duration(3s), Duration(900s), Duration(2s), Duration(3s)}) {
    limit.observed(wait);
  }
  EXPECT_EQ(limit.median(), 3s);
  EXPECT_EQ(limit.limit(), 30s);
}

TEST(AdaptiveLimit, ForgetsWhatLeftTheWindow) {
  AdaptiveLimit limit({.floor = 1s, .factor = 10, .window = 3});
  for (const Duration wait :
       {Duration(50s), Duration(50s), Duration(50s), Duration(1s), Duration(1s)}) {
    limit.observed(wait);
  }
  EXPECT_EQ(limit.limit(), 10s);
}

class HandClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  TimePoint now_{};
};

class Arbiter final : public WaitArbiter {
 public:
  Duration report_wait(const LongWait& wait) override {
    reports_.push_back(wait);
    return more_;
  }
  void waits() override { ++signs_of_life_; }
  std::vector<LongWait> reports_;
  Duration more_ = 25s;
  int signs_of_life_ = 0;
};

/// Waits for an event that comes at `when`.
void wait_until(const Waits& waits, HandClock& clock, TimePoint when,
                const std::function<void()>& poll = {}) {
  waits.run(
      clock,
      [&](TimePoint until) {
        clock.now_ = std::min(until, when);
        if (clock.now_ < when) {
          throw TimedOut("not yet");
        }
      },
      {.operation = "allgather",
       .missing =
           [] {
             return std::vector{Rank{2}, Rank{5}};
           }},
      poll);
}

TEST(Waits, ReportsALongWaitAndGoesOnAsLongAsItMay) {
  Arbiter arbiter;
  HandClock clock;
  const Waits waits({.limit = 60s, .arbiter = &arbiter});
  wait_until(waits, clock, TimePoint(29s));
  EXPECT_TRUE(arbiter.reports_.empty());
  wait_until(waits, clock, TimePoint(29s + 100s));
  std::vector<double> waited;
  for (const LongWait& report : arbiter.reports_) {
    EXPECT_EQ(report.operation, "allgather");
    EXPECT_THAT(report.ranks, ElementsAre(Rank{2}, Rank{5}));
    EXPECT_EQ(report.limit, 60s);
    waited.push_back(to_seconds(report.waited));
  }
  EXPECT_THAT(waited, ElementsAre(30, 55, 80));
}

TEST(Waits, ShowNowAndThenThatTheyGoOn) {
  Arbiter arbiter;
  HandClock clock;
  const Waits waits({.limit = 10s, .arbiter = &arbiter});
  wait_until(waits, clock, TimePoint(Waits::alive_every));
  EXPECT_EQ(arbiter.signs_of_life_, 0) << "a short wait costs nothing";
  clock.now_ = {};
  wait_until(waits, clock, TimePoint(2s));
  EXPECT_EQ(arbiter.signs_of_life_, 7);
  EXPECT_TRUE(arbiter.reports_.empty());
}

TEST(Waits, SaysHowLongSuchWaitsTake) {
  Arbiter arbiter;
  HandClock clock;
  Waits waits({.limit = 60s, .arbiter = &arbiter});
  for (const Duration usual : {4s, 5s, 6s}) {
    waits.observed(usual);
  }
  wait_until(waits, clock, TimePoint(31s));
  EXPECT_EQ(arbiter.reports_.at(0).usual, 5s);
  EXPECT_EQ(arbiter.reports_.at(0).limit, 100s);
  waits.allow(300s);
  wait_until(waits, clock, TimePoint(62s));
  EXPECT_EQ(arbiter.reports_.at(1).limit, 300s);
}

TEST(Waits, EndAtTheirLimitWithoutAnArbiter) {
  HandClock clock;
  const Waits waits({.limit = 60s});
  wait_until(waits, clock, TimePoint(60s));
  try {
    wait_until(waits, clock, TimePoint(121s));
    FAIL() << "the limit has passed";
  } catch (const RanksMissing& error) {
    EXPECT_STREQ(error.what(), "allgather: waited 60.0 s for rank 2, 5");
    EXPECT_THAT(error.wait().ranks, ElementsAre(Rank{2}, Rank{5}));
  }
  EXPECT_EQ(clock.now(), TimePoint(120s));
}

TEST(Waits, LookUpNowAndThen) {
  HandClock clock;
  const Waits waits({.limit = 60s});
  int looks = 0;
  wait_until(waits, clock, TimePoint(1s), [&] { ++looks; });
  EXPECT_EQ(looks, 9);
  const auto changed = [&] { throw ViewChanged("a loss"); };
  EXPECT_THROW(wait_until(waits, clock, TimePoint(3s), changed), ViewChanged);
  EXPECT_EQ(clock.now(), TimePoint(1100ms));
}

}  // namespace
}  // namespace syncopate
