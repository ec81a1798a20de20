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
