// Goal:   in a timed round of esync the first step has the whole learning rate; each further step
//         has the rate times the ratio of its samples to a mini-batch. Under the paper's rule all
//         steps have the whole rate.
// Method: a schedule whose pacer requests the end of each round.

#include <gtest/gtest.h>

#include "scheme/esync.hpp"

namespace syncopate {
namespace {

class FixedOrder : public PacerClient {
 public:
  void report(const StepReport& /*report*/) override {}
  PaceOrder order() const override { return order_of_pacer; }

  PaceOrder order_of_pacer{};
};

TEST(PacedSchedule, FurtherPartialStepsOfARoundHaveTheirShareOfTheRate) {
  FixedOrder pacer;
  PacedSchedule schedule(pacer, {.first = {.step_samples = 4, .sync_after = {}}, .batch_size = 64});
  EXPECT_EQ(schedule.rate_factor(4), 1);
  EXPECT_FALSE(schedule.due_after({.samples = 4}));
  EXPECT_EQ(schedule.rate_factor(4), 1.0 / 16);
  EXPECT_EQ(schedule.rate_factor(64), 1);
  EXPECT_FALSE(schedule.due_after({.samples = 4}));
  EXPECT_EQ(schedule.rate_factor(16), 0.25);
  pacer.order_of_pacer = {.round = 1, .sync_after = 3, .step_samples = 16};
  EXPECT_TRUE(schedule.due_after({.samples = 16}));
  EXPECT_EQ(schedule.rate_factor(16), 1) << "the first step of the next round";
}

/// While a round is held up, a worker with a part of the global batch may take hundreds of steps.
TEST(PacedSchedule, OnlyTwoStepsOfAPartOfTheGlobalBatchHaveTheWholeRate) {
  FixedOrder pacer;
  PacedSchedule schedule(pacer, {.first = {.step_samples = 2, .sync_after = {}}, .batch_size = 64});
  pacer.order_of_pacer = {
      .round = 0, .sync_after = 0, .step_samples = 16, .period = 1, .whole = 16};
  EXPECT_EQ(schedule.rate_factor(16), 1);
  schedule.due_after({.samples = 16});
  EXPECT_EQ(schedule.rate_factor(16), 1);
  EXPECT_EQ(schedule.rate_factor(15), 1) << "parts fluctuate by a sample";
  EXPECT_EQ(schedule.rate_factor(8), 0.125);
  schedule.due_after({.samples = 16});
  EXPECT_EQ(schedule.rate_factor(16), 0.25);
  EXPECT_EQ(schedule.rate_factor(64), 1);
}

TEST(PacedSchedule, AdoptsThePeriodOfTheOrderWhereRoundsOfThatPeriodBegin) {
  FixedOrder pacer;
  PacedSchedule schedule(pacer, {.first = {.step_samples = 4, .sync_after = {}}, .batch_size = 64});
  schedule.restart(20, 4);
  EXPECT_EQ(schedule.period(), 4);
  pacer.order_of_pacer = {.round = 24, .sync_after = 1, .step_samples = 4, .period = 8};
  EXPECT_TRUE(schedule.due_after({.samples = 4}));
  EXPECT_EQ(schedule.period(), 4) << "round 24 begins rounds of 4 after round 20, not of 8";
  pacer.order_of_pacer.round = 28;
  EXPECT_TRUE(schedule.due_after({.samples = 4}));
  EXPECT_EQ(schedule.period(), 8);
  schedule.call(29);
  EXPECT_TRUE(schedule.due_after({.samples = 4})) << "all others synchronize in round 29";
  EXPECT_EQ(schedule.period(), 8) << "which begins rounds of any period";
  EXPECT_FALSE(schedule.due_after({.samples = 4}));
}

TEST(PacedSchedule, StepsOfThePaperHaveTheWholeRate) {
  FixedOrder pacer;
  PacedSchedule schedule(
      pacer,
      {.first = {.step_samples = 64, .sync_after = 1}, .batch_size = 64, .rule = PaceRule::paper});
  EXPECT_TRUE(schedule.due_after({.samples = 64}));
  EXPECT_FALSE(schedule.due_after({.samples = 64}));
  EXPECT_EQ(schedule.rate_factor(16), 1) << "the last batch of an epoch";
}

}  // namespace
}  // namespace syncopate
