// Goal:   what happens every so often happens at every multiple of its period, once.
// Method: walk through training step by step and list where it was due.

#include "train/periodic_trigger.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace syncopate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// The steps after which it was due, of twelve that take 0.25 s each, ten to an epoch.
std::vector<std::uint64_t> due_after(const Every& every) {
  const PeriodicTrigger recurrence(every, 10);
  std::vector<std::uint64_t> due;
  PeriodicTrigger::Moment before;
  for (std::uint64_t step = 1; step <= 12; ++step) {
    const PeriodicTrigger::Moment after{static_cast<double>(step),
                                        step * std::chrono::milliseconds(250)};
    if (recurrence.due(before, after)) {
      due.push_back(step);
    }
    before = after;
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

}  // namespace
}  // namespace syncopate
