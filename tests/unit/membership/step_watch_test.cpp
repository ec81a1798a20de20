// Goal:   a worker is waited for as long as its step may take, by what is expected of it and by the progress that it
//         makes; not for longer, and no shorter than the limit of a wait.
// Method: heartbeats with hand-made times; the moments until which the worker is waited for are worked out by hand.

#include "membership/step_watch.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace syncopate {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint start{};
constexpr StepWatch::Options minute{.wait_limit = 60s};

struct Beat {
  bool computing = true;
  std::uint64_t step = 0;
  double expected = 0;
  std::uint64_t progress = 0;
};

wire::Heartbeat heartbeat(const Beat& beat) {
  wire::Heartbeat heartbeat;
  heartbeat.set_computing(beat.computing);
  heartbeat.set_step(beat.step);
  heartbeat.set_expected_seconds(beat.expected);
  heartbeat.set_progress(beat.progress);
  return heartbeat;
}

TEST(StepWatch, WaitsForAStepAsLongAsIsLikely) {
  struct Case {
    double expected;
    Duration limit;
  };
  for (const Case& each : {Case{0.5, 60s}, Case{3, 60s}, Case{3.5, 70s}, Case{500, 10000s}}) {
    SCOPED_TRACE(each.expected);
    StepWatch watch(minute, start);
    for (int second = 5; second < 100; ++second) {
      watch.heard(heartbeat({.expected = each.expected}), start + second * 1s);
    }
    EXPECT_EQ(watch.begun(), start + 5s);
    EXPECT_EQ(watch.due(), start + 5s + each.limit);
    EXPECT_TRUE(watch.waited_for(watch.due() - 1ns));
    EXPECT_FALSE(watch.hangs(watch.due() - 1ns));
    EXPECT_TRUE(watch.hangs(watch.due()));
  }
}

TEST(StepWatch, BeginsAgainWithEachStep) {
  StepWatch watch(minute, start);
  watch.heard(heartbeat({.step = 7, .expected = 10}), start + 10s);
  watch.heard(heartbeat({.step = 8, .expected = 10}), start + 20s);
  EXPECT_EQ(watch.due(), start + 220s);
}

TEST(StepWatch, ExtendsAStepThatMakesProgress) {
  StepWatch watch(minute, start);
  watch.heard(heartbeat({.expected = 1}), start);
  watch.heard(heartbeat({.expected = 1, .progress = 12}), start + 50s);
  watch.heard(heartbeat({.expected = 1, .progress = 12}), start + 55s);
  EXPECT_EQ(watch.due(), start + 110s) << "a device may have become slower";
  watch.heard(heartbeat({.expected = 100, .progress = 13}), start + 60s);
  EXPECT_EQ(watch.due(), start + 2000s);
}

TEST(StepWatch, GivesAFirstStepTenMinutesWithoutProgress) {
  StepWatch watch(minute, start);
  watch.heard(heartbeat({}), start);
  EXPECT_EQ(watch.due(), start + 10min);
  watch.heard(heartbeat({.progress = 1}), start + 9min);
  watch.heard(heartbeat({.progress = 2}), start + 18min);
  EXPECT_EQ(watch.due(), start + 28min);
  EXPECT_FALSE(watch.hangs(start + 28min - 1ns));
  EXPECT_TRUE(watch.hangs(start + 28min));
  StepWatch patient({.wait_limit = 1h}, start);
  patient.heard(heartbeat({}), start);
  EXPECT_EQ(patient.due(), start + 1h);
}

TEST(StepWatch, WaitsForOneThatDoesNotComputeUntilTheLimitOfAWait) {
  StepWatch watch(minute, start + 3s);
  EXPECT_EQ(watch.due(), start + 63s) << "it starts up";
  watch.heard(heartbeat({.expected = 500}), start + 10s);
  watch.heard(heartbeat({.computing = false, .step = 1, .expected = 500}), start + 510s);
  watch.heard(heartbeat({.computing = false, .step = 1, .expected = 500}), start + 520s);
  EXPECT_EQ(watch.due(), start + 570s);
  EXPECT_FALSE(watch.waited_for(start + 570s));
  EXPECT_FALSE(watch.hangs(start + 570s)) << "it may wait itself";
  watch.heard(heartbeat({.step = 1, .expected = 500}), start + 600s);
  EXPECT_EQ(watch.due(), start + 10600s);
}

TEST(StepWatch, HasNoLimitBelowTheTimeThatHeartbeatsTake) {
  StepWatch watch({.wait_limit = 10ms}, start);
  watch.heard(heartbeat({.expected = 1e-4}), start);
  EXPECT_EQ(watch.due(), start + 1s);
}

TEST(StepWatch, TakesNoNonsenseForATime) {
  for (const double seconds :
       {-5.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    StepWatch watch(minute, start);
    watch.heard(heartbeat({.expected = seconds}), start);
    EXPECT_EQ(watch.due(), start + 10min);
  }
  StepWatch watch(minute, start);
  watch.heard(heartbeat({.expected = 1e300}), start);
  EXPECT_GT(watch.due(), start + 10000h);
}

}  // namespace
}  // namespace syncopate
