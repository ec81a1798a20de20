// Goal: a worker's time is booked to the phase it was spent in, and the training clock leaves out
//       pauses.
// Method: a clock that moves when told, closed values.

#include "train/phase_clock.hpp"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

using std::chrono::seconds;

class ManualClock : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(Duration duration) { now_ += duration; }

 private:
  TimePoint now_{seconds(1'000)};
};

TEST(PhaseClock, BooksTimeToItsPhase) {
  ManualClock clock;
  PhaseClock phases(clock);
  clock.advance(seconds(1));  // in no phase
  {
    const auto data = phases.enter(Phase::data);
    clock.advance(seconds(2));
  }
  clock.advance(seconds(3));
  {
    const auto forward = phases.enter(Phase::forward);
    clock.advance(seconds(4));
  }
  {
    const auto backward = phases.enter(Phase::backward);
    clock.advance(seconds(8));
  }
  phases.add(Phase::update, seconds(1));
  {
    const auto data = phases.enter(Phase::data);
    clock.advance(seconds(5));
  }
  EXPECT_EQ(phases.spent(Phase::data), seconds(7));
  EXPECT_EQ(phases.spent(Phase::forward), seconds(4));
  EXPECT_EQ(phases.spent(Phase::backward), seconds(8));
  EXPECT_EQ(phases.computing(), seconds(13));
  EXPECT_EQ(phases.spent(Phase::communicate), seconds(0));
  EXPECT_EQ(phases.spent(Phase::wait), seconds(0));
}

TEST(PhaseClock, ReturnsToThePhaseAroundAScope) {
  ManualClock clock;
  PhaseClock phases(clock);
  {
    const auto communicate = phases.enter(Phase::communicate);
    clock.advance(seconds(1));
    {
      const auto wait = phases.enter(Phase::wait);
      clock.advance(seconds(10));
    }
    clock.advance(seconds(2));
  }
  EXPECT_EQ(phases.spent(Phase::communicate), seconds(3));
  EXPECT_EQ(phases.spent(Phase::wait), seconds(10));
}

TEST(PhaseClock, CountsThePhaseUnderWay) {
  ManualClock clock;
  PhaseClock phases(clock);
  const auto compute = phases.enter(Phase::forward);
  clock.advance(seconds(5));
  EXPECT_EQ(phases.spent(Phase::forward), seconds(5));
  EXPECT_EQ(phases.spent(Phase::data), seconds(0));
}

TEST(PhaseClock, AddsWhatOthersMeasured) {
  ManualClock clock;
  PhaseClock phases(clock);
  phases.add(Phase::communicate, seconds(2));
  phases.add(Phase::communicate, seconds(3));
  EXPECT_EQ(phases.spent(Phase::communicate), seconds(5));
}

TEST(TrainingClock, LeavesOutPauses) {
  ManualClock clock;
  TrainingClock training(clock);
  EXPECT_EQ(training.now(), seconds(0));
  clock.advance(seconds(5));
  training.take_off(seconds(2));
  EXPECT_EQ(training.now(), seconds(3));
  clock.advance(seconds(1));
  EXPECT_EQ(training.now(), seconds(4));
}

TEST(TrainingClock, GoesOnWhereARunHadStopped) {
  ManualClock clock;
  const TrainingClock training(clock, seconds(100));
  clock.advance(seconds(1));
  EXPECT_EQ(training.now(), seconds(101));
}

TEST(TrainingClock, TellsWhenItWillShowAReading) {
  ManualClock clock;
  TrainingClock training(clock);
  clock.advance(seconds(5));
  training.take_off(seconds(2));
  EXPECT_EQ(training.when(training.now()), clock.now());
  EXPECT_EQ(training.when(seconds(10)), clock.now() + seconds(7));
}

}  // namespace
}  // namespace syncopate
