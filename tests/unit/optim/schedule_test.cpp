// Goal: learning rates follow the formulas in the header, and an invalid value is refused with the
//       name of its option.
// Method: closed values at the ends, in the middle and next to every corner of the schedules.

#include "optim/schedule.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "base/errors.hpp"

namespace syncopate {
namespace {

Schedule::Options options_of(ScheduleShape shape) {
  return {.shape = shape, .learning_rate = 0.8, .epochs = 10, .step_epochs = 3, .factor = 0.5};
}

TEST(Schedule, ConstantStaysAsItIs) {
  const Schedule schedule(options_of(ScheduleShape::constant));
  for (const double epoch : {0.0, 0.5, 9.99, 10.0, 25.0}) {
    EXPECT_DOUBLE_EQ(schedule.rate(epoch), 0.8);
  }
}

TEST(Schedule, StepDropsAtWholeMultiples) {
  const Schedule schedule(options_of(ScheduleShape::step));
  EXPECT_DOUBLE_EQ(schedule.rate(0), 0.8);
  EXPECT_DOUBLE_EQ(schedule.rate(2.999), 0.8);
  EXPECT_DOUBLE_EQ(schedule.rate(3), 0.4);
  EXPECT_DOUBLE_EQ(schedule.rate(5.999), 0.4);
  EXPECT_DOUBLE_EQ(schedule.rate(6), 0.2);
  EXPECT_DOUBLE_EQ(schedule.rate(9.5), 0.1);
}

TEST(Schedule, CosineFallsToItsLastRate) {
  const Schedule schedule(options_of(ScheduleShape::cosine));
  EXPECT_DOUBLE_EQ(schedule.rate(0), 0.8);
  EXPECT_NEAR(schedule.rate(2.5), 0.4 + 0.4 * (1 + std::sqrt(0.5)) / 2, 1e-12);
  EXPECT_NEAR(schedule.rate(5), 0.6, 1e-12);
  EXPECT_NEAR(schedule.rate(7.5), 0.4 + 0.4 * (1 - std::sqrt(0.5)) / 2, 1e-12);
  EXPECT_NEAR(schedule.rate(10), 0.4, 1e-12);
  EXPECT_NEAR(schedule.rate(12), 0.4, 1e-12);
}

TEST(Schedule, WarmUpRisesLinearlyAndDelaysTheRest) {
  auto options = options_of(ScheduleShape::step);
  options.warm_up = 2;
  const Schedule step(options);
  EXPECT_DOUBLE_EQ(step.rate(0), 0);
  EXPECT_DOUBLE_EQ(step.rate(0.5), 0.2);
  EXPECT_DOUBLE_EQ(step.rate(2), 0.8);
  EXPECT_DOUBLE_EQ(step.rate(4.999), 0.8);
  EXPECT_DOUBLE_EQ(step.rate(5), 0.4);
  options.shape = ScheduleShape::cosine;
  const Schedule cosine(options);
  EXPECT_DOUBLE_EQ(cosine.rate(1), 0.4);
  EXPECT_DOUBLE_EQ(cosine.rate(2), 0.8);
  EXPECT_NEAR(cosine.rate(6), 0.6, 1e-12);
  EXPECT_NEAR(cosine.rate(10), 0.4, 1e-12);
}

TEST(Schedule, MayBeWarmUpAlone) {
  auto options = options_of(ScheduleShape::cosine);
  options.warm_up = options.epochs;
  EXPECT_DOUBLE_EQ(Schedule(options).rate(5), 0.4);
  EXPECT_DOUBLE_EQ(Schedule(options).rate(10), 0.4);
}

TEST(Schedule, TakesEveryKnownName) {
  for (const auto& [name, shape] : names_of(ScheduleShape{})) {
    EXPECT_DOUBLE_EQ(Schedule(options_of(shape)).rate(0), 0.8) << name;
  }
}

/// Returns the error of a schedule with options that `change` has modified.
template <class Change>
std::string refusal(ScheduleShape shape, Change change) {
  auto options = options_of(shape);
  change(options);
  try {
    const Schedule refused(options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Schedule, RefusesNonsenseByItsOption) {
  using testing::StartsWith;
  const double nan = std::nan("");
  for (const double rate : {0.0, -1.0, nan, HUGE_VAL}) {
    EXPECT_THAT(
        refusal(ScheduleShape::constant, [&](auto& options) { options.learning_rate = rate; }),
        StartsWith("--learning-rate"));
  }
  for (const double epochs : {0.0, nan}) {
    EXPECT_THAT(refusal(ScheduleShape::constant, [&](auto& options) { options.epochs = epochs; }),
                StartsWith("--epochs"));
  }
  for (const double warm_up : {-1.0, 10.5, nan}) {
    EXPECT_THAT(refusal(ScheduleShape::constant, [&](auto& options) { options.warm_up = warm_up; }),
                StartsWith("--warm-up"));
  }
  for (const double step : {0.0, -1.0, nan}) {
    EXPECT_THAT(refusal(ScheduleShape::step, [&](auto& options) { options.step_epochs = step; }),
                StartsWith("--schedule-step"));
  }
  for (const double factor : {0.0, -0.5, 1.5, nan}) {
    EXPECT_THAT(refusal(ScheduleShape::step, [&](auto& options) { options.factor = factor; }),
                StartsWith("--schedule-factor"));
  }
  EXPECT_THAT(refusal(ScheduleShape::cosine, [](auto& options) { options.factor = 2; }),
              StartsWith("--schedule-factor"));
  EXPECT_EQ(refusal(ScheduleShape::cosine, [](auto& options) { options.factor = 0; }), "");
}

}  // namespace
}  // namespace syncopate
