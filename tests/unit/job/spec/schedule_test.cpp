// Goal: learning rates follow the formulas of the header, and nonsense is refused by its option.
// Method: closed values at the ends, the middle and just beside every corner.

#include "job/spec/schedule.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "base/errors.hpp"
#include "tests/support/config_options.hpp"

namespace syncopate {
namespace {

TrainConfig config_of(const std::string& schedule) {
  TrainConfig config;
  set(config, "schedule", schedule);
  config.learning_rate = 0.8;
  config.epochs = 10;
  config.schedule_step = 3;
  config.schedule_factor = 0.5;
  return config;
}

TEST(Schedule, ConstantStaysAsItIs) {
  const Schedule schedule(config_of("constant"));
  for (const double epoch : {0.0, 0.5, 9.99, 10.0, 25.0}) {
    EXPECT_DOUBLE_EQ(schedule.rate(epoch), 0.8);
  }
}

TEST(Schedule, StepDropsAtWholeMultiples) {
  const Schedule schedule(config_of("step"));
  EXPECT_DOUBLE_EQ(schedule.rate(0), 0.8);
  EXPECT_DOUBLE_EQ(schedule.rate(2.999), 0.8);
  EXPECT_DOUBLE_EQ(schedule.rate(3), 0.4);
  EXPECT_DOUBLE_EQ(schedule.rate(5.999), 0.4);
  EXPECT_DOUBLE_EQ(schedule.rate(6), 0.2);
  EXPECT_DOUBLE_EQ(schedule.rate(9.5), 0.1);
}

TEST(Schedule, CosineFallsToItsLastRate) {
  const Schedule schedule(config_of("cosine"));
  EXPECT_DOUBLE_EQ(schedule.rate(0), 0.8);
  EXPECT_NEAR(schedule.rate(2.5), 0.4 + 0.4 * (1 + std::sqrt(0.5)) / 2, 1e-12);
  EXPECT_NEAR(schedule.rate(5), 0.6, 1e-12);
  EXPECT_NEAR(schedule.rate(7.5), 0.4 + 0.4 * (1 - std::sqrt(0.5)) / 2, 1e-12);
  EXPECT_NEAR(schedule.rate(10), 0.4, 1e-12);
  EXPECT_NEAR(schedule.rate(12), 0.4, 1e-12);
}

TEST(Schedule, WarmUpRisesLinearlyAndDelaysTheRest) {
  auto config = config_of("step");
  config.warm_up = 2;
  const Schedule step(config);
  EXPECT_DOUBLE_EQ(step.rate(0), 0);
  EXPECT_DOUBLE_EQ(step.rate(0.5), 0.2);
  EXPECT_DOUBLE_EQ(step.rate(2), 0.8);
  EXPECT_DOUBLE_EQ(step.rate(4.999), 0.8);
  EXPECT_DOUBLE_EQ(step.rate(5), 0.4);
  set(config, "schedule", "cosine");
  const Schedule cosine(config);
  EXPECT_DOUBLE_EQ(cosine.rate(1), 0.4);
  EXPECT_DOUBLE_EQ(cosine.rate(2), 0.8);
  EXPECT_NEAR(cosine.rate(6), 0.6, 1e-12);
  EXPECT_NEAR(cosine.rate(10), 0.4, 1e-12);
}

TEST(Schedule, MayBeWarmUpAlone) {
  auto config = config_of("cosine");
  config.warm_up = config.epochs;
  EXPECT_DOUBLE_EQ(Schedule(config).rate(5), 0.4);
  EXPECT_DOUBLE_EQ(Schedule(config).rate(10), 0.4);
}

TEST(Schedule, TakesEveryKnownName) {
  for (const auto& [name, shape] : names_of(ScheduleShape{})) {
    EXPECT_DOUBLE_EQ(Schedule(config_of(std::string(name))).rate(0), 0.8) << name;
  }
}

/// What a configuration is refused with after `change` was made to it.
template <class Change>
std::string refusal(const std::string& schedule, Change change) {
  auto config = config_of(schedule);
  change(config);
  try {
    const Schedule refused(config);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Schedule, RefusesNonsenseByItsOption) {
  using testing::StartsWith;
  const double nan = std::nan("");
  for (const double rate : {0.0, -1.0, nan, HUGE_VAL}) {
    EXPECT_THAT(refusal("constant", [&](auto& config) { config.learning_rate = rate; }),
                StartsWith("--learning-rate"));
  }
  for (const double epochs : {0.0, nan}) {
    EXPECT_THAT(refusal("constant", [&](auto& config) { config.epochs = epochs; }),
                StartsWith("--epochs"));
  }
  for (const double warm_up : {-1.0, 10.5, nan}) {
    EXPECT_THAT(refusal("constant", [&](auto& config) { config.warm_up = warm_up; }),
                StartsWith("--warm-up"));
  }
  for (const double step : {0.0, -1.0, nan}) {
    EXPECT_THAT(refusal("step", [&](auto& config) { config.schedule_step = step; }),
                StartsWith("--schedule-step"));
  }
  for (const double factor : {0.0, -0.5, 1.5, nan}) {
    EXPECT_THAT(refusal("step", [&](auto& config) { config.schedule_factor = factor; }),
                StartsWith("--schedule-factor"));
  }
  EXPECT_THAT(refusal("cosine", [](auto& config) { config.schedule_factor = 2; }),
              StartsWith("--schedule-factor"));
  EXPECT_EQ(refusal("cosine", [](auto& config) { config.schedule_factor = 0; }), "");
}

TEST(Schedule, NeedsAResolvedRate) {
  auto config = config_of("constant");
  config.learning_rate.reset();
  EXPECT_THROW(Schedule{config}, InternalError);
}

}  // namespace
}  // namespace syncopate
