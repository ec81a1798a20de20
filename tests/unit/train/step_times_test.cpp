// Goal:   a worker's time is counted in its phase; the speed of a device by itself is measured in
//         whole batches, although a sample of a smaller step takes longer; the longest of the
//         earlier steps, scaled to the samples of the next one, bounds the time of that one.
// Method: a clock that the test moves, closed values.

#include "train/step_times.hpp"

#include <gtest/gtest.h>

#include "tests/support/manual_clock.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;

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

/// A step over `samples`: a second of data, one of forward, `backward` and one of update; then two
/// of waiting.
void take_step(ManualClock& clock, StepTimes& times, std::uint32_t samples, Duration backward) {
  times.begin_step();
  {
    const auto data = times.phases().enter(Phase::data);
    clock.advance(seconds(1));
  }
  times.begin_pass();
  clock.advance(seconds(1));
  times.forward_done();
  clock.advance(backward);
  times.end_pass();
  clock.advance(seconds(3));
  times.phases().add(Phase::update, seconds(1));
  times.phases().add(Phase::wait, seconds(2));
  times.end_step(samples);
}

TEST(StepTimes, TellsForwardBackwardAndUpdateApart) {
  ManualClock clock;
  StepTimes times(clock, {.batch_size = 16});
  take_step(clock, times, 16, seconds(5));
  take_step(clock, times, 4, seconds(2));
  MetricValues metrics;
  times.report(metrics);
  EXPECT_EQ(metrics[Metric::data_seconds], 2);
  EXPECT_EQ(metrics[Metric::forward_seconds], 2);
  EXPECT_EQ(metrics[Metric::backward_seconds], 7);
  EXPECT_EQ(metrics[Metric::update_seconds], 2);
  EXPECT_EQ(metrics[Metric::compute_seconds], 11);
  EXPECT_EQ(metrics[Metric::wait_seconds], 4);
}

TEST(StepTimes, TakesAThirdOfThePassOfAnEmulatedDeviceForForward) {
  ManualClock clock;
  StepTimes times(clock, {.batch_size = 16, .emulated = true});
  take_step(clock, times, 16, seconds(5));
  EXPECT_EQ(times.phases().spent(Phase::forward), seconds(2));
  EXPECT_EQ(times.phases().spent(Phase::backward), seconds(4));
}

/// 16 samples take 8 s, and 4 take 5.
TEST(StepTimes, TellsTheSpeedInWholeBatches) {
  ManualClock clock;
  StepTimes times(clock, {.batch_size = 16, .known_throughput = 3});
  for (int step = 0; step < 10; ++step) {
    take_step(clock, times, 4, seconds(2));
  }
  EXPECT_EQ(times.stand_alone_throughput(), 3) << "what was known before";
  for (int step = 0; step < 3; ++step) {
    take_step(clock, times, 16, seconds(5));
  }
  EXPECT_EQ(times.stand_alone_throughput(), 2);
  take_step(clock, times, 4, seconds(2));
  EXPECT_EQ(times.stand_alone_throughput(), 2);
}

TEST(StepForecast, KnowsNothingBeforeTheFirstStep) {
  StepForecast forecast;
  EXPECT_FALSE(forecast.known());
  forecast.took(0, 3s);
  EXPECT_EQ(forecast.longest(64), 0s);
}

TEST(StepForecast, ScalesTheLongestStepToTheSamples) {
  StepForecast forecast;
  forecast.took(4, 2s);
  forecast.took(64, 16s);
  forecast.took(64, 8s);
  EXPECT_EQ(forecast.longest(64), 32s);
  EXPECT_EQ(forecast.longest(2), 1s);
}

TEST(StepForecast, ForgetsWhatIsLongAgo) {
  StepForecast forecast;
  forecast.took(1, 100s);
  for (int i = 0; i < 63; ++i) {
    forecast.took(1, 1s);
  }
  EXPECT_EQ(forecast.longest(1), 100s);
  forecast.took(1, 1s);
  EXPECT_EQ(forecast.longest(1), 1s);
}

}  // namespace
}  // namespace syncopate
