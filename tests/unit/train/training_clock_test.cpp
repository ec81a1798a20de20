// Goal:   the training clock does not count pauses, and a periodic trigger is due once at every
//         multiple of its period.
// Method: a clock that the test moves; a walk through training, step by step, that lists the steps
//         at which the trigger was due.

#include "train/training_clock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/manual_clock.hpp"

namespace syncopate {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

/// The steps after which it was due, of twelve that take 0.25 s each, ten to an epoch.
std::vector<std::uint64_t> due_after(const Every& every) {
  PeriodicTrigger trigger(every, 10);
  std::vector<std::uint64_t> due;
  for (std::uint64_t step = 1; step <= 12; ++step) {
    if (trigger.due({.step = static_cast<double>(step),
                     .training = step * std::chrono::milliseconds(250)})) {
      due.push_back(step);
    }
  }
  return due;
}

TEST(PeriodicTrigger, CountsStepsEpochsAndSeconds) {
  EXPECT_THAT(due_after({Every::Unit::steps, 4}), ElementsAre(4, 8, 12));
  EXPECT_THAT(due_after({Every::Unit::epochs, 0.5}), ElementsAre(5, 10));
  EXPECT_THAT(due_after({Every::Unit::seconds, 1}), ElementsAre(4, 8, 12));
}

TEST(PeriodicTrigger, IsDueOnceWhereSeveralPeriodsPassInAStep) {
  EXPECT_THAT(due_after({Every::Unit::steps, 0.25}),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
}

TEST(PeriodicTrigger, NeverIsNever) {
  EXPECT_THAT(due_after({}), IsEmpty());
}

TEST(PeriodicTrigger, CountsFromWhereItIsRestarted) {
  PeriodicTrigger trigger({Every::Unit::steps, 4}, 10);
  trigger.restart({.step = 9});
  EXPECT_FALSE(trigger.due({.step = 11}));
  EXPECT_TRUE(trigger.due({.step = 12}));
  EXPECT_FALSE(trigger.due({.step = 12}));
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

TEST(TrainingClock, KeepsTheReadingAtWhichItIsStopped) {
  ManualClock clock;
  TrainingClock training(clock, seconds(100));
  clock.advance(seconds(5));
  training.take_off(seconds(1));
  clock.advance(seconds(8));
  training.stop(clock.now() - seconds(8));
  EXPECT_EQ(training.now(), seconds(104));
  clock.advance(seconds(1));
  training.take_off(seconds(2));
  training.stop(clock.now());
  EXPECT_EQ(training.now(), seconds(104));
}

}  // namespace
}  // namespace syncopate
