// Goal:   a fixed schedule is due after every H steps, and after the last step of all workers.
// Method: a table of the steps at which a round ends.

#include <gtest/gtest.h>

#include <vector>

#include "scheme/local_rounds.hpp"

namespace syncopate {
namespace {

/// Returns the steps, counted from 1, after which a schedule of `period` steps is due.
std::vector<int> due_steps(std::uint32_t period, int steps, int last) {
  FixedSchedule schedule(period);
  std::vector<int> due;
  for (int step = 1; step <= steps; ++step) {
    if (schedule.due_after({.last = step == last})) {
      due.push_back(step);
    }
  }
  return due;
}

TEST(FixedSchedule, IsDueAfterEveryPeriodAndTheLastStep) {
  struct Case {
    std::uint32_t period;
    int steps;
    int last;
    std::vector<int> due;
  };
  const std::vector<Case> cases{{1, 3, 3, {1, 2, 3}},
                                {3, 9, 9, {3, 6, 9}},
                                {3, 8, 8, {3, 6, 8}},
                                {4, 3, 3, {3}},
                                {3, 8, 4, {3, 4, 7}}};
  for (const Case& expected : cases) {
    EXPECT_EQ(due_steps(expected.period, expected.steps, expected.last), expected.due)
        << expected.period << " steps a round, the last is " << expected.last;
  }
}

}  // namespace
}  // namespace syncopate
