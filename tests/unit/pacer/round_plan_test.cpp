// Goal:   a round is as short as its three lower limits allow, a step is as large as fits, and
//         neither changes back and forth.
// Method: values worked out by hand; each limit in turn decides the length.

#include "pacer/round_plan.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "pacer/pacer_client.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

constexpr DeviceSpeed fast{.sample_seconds = 0.001, .batch_size = 64};
constexpr DeviceSpeed slow{.sample_seconds = 0.05, .batch_size = 64};

double round_of(std::initializer_list<DeviceSpeed> devices, Duration synchronization,
                bool waits = false) {
  return to_seconds(
      shortest_round(std::span(devices.begin(), devices.size()), synchronization, waits));
}

TEST(RoundTime, IsTheLongestOfItsReasons) {
  EXPECT_NEAR(round_of({fast, slow}, 1ms), 4 * 0.05, 1e-6) << "a probe of the slowest";
  EXPECT_NEAR(round_of({fast, fast}, 1ms), 64 * 0.001, 1e-6) << "a mini-batch of the fastest";
  EXPECT_NEAR(round_of({fast, slow}, 50ms), 1.0, 1e-6) << "twenty times the synchronization";
}

TEST(RoundTime, NeedNotHoldAProbeOfADeviceThatMayMissRounds) {
  const std::array devices{fast, slow};
  EXPECT_NEAR(to_seconds(shortest_round(devices, 1ms, false, 2)), 4 * 0.05 / 2, 1e-6);
  EXPECT_NEAR(to_seconds(shortest_round(devices, 1ms, false, 64)), 64 * 0.001, 1e-6);
}

TEST(GlobalBatch, IsDividedBySpeed) {
  std::vector<DeviceSpeed> devices{{.sample_seconds = 0.001, .batch_size = 64},
                                   {.sample_seconds = 0.001, .batch_size = 64},
                                   {.sample_seconds = 0.002, .batch_size = 64},
                                   {.sample_seconds = 0.1, .batch_size = 64}};
  divide_global_batch(devices, 64);
  EXPECT_EQ(devices[0].part, 25) << "64 / 2.51";
  EXPECT_EQ(devices[2].part, 13);
  EXPECT_EQ(devices[3].part, 2) << "not less";
  EXPECT_NEAR(to_seconds(shortest_round(devices, 1us, false, 64)), 0.025, 1e-6)
      << "the part of the fastest";
  EXPECT_EQ(period_of(devices[3], 25ms, 1, 64), 8) << "two samples, 0.2 s";
  devices.resize(1);
  divide_global_batch(devices, 256);
  EXPECT_EQ(devices[0].part, 64) << "no more than a mini-batch";
}

TEST(GlobalBatch, GivesNoDeviceLessThanItsLeastPart) {
  std::vector<DeviceSpeed> devices{{.sample_seconds = 0.001, .batch_size = 64, .least_part = 44},
                                   {.sample_seconds = 0.001, .batch_size = 64, .least_part = 1},
                                   {.sample_seconds = 0.004, .batch_size = 64, .least_part = 100}};
  divide_global_batch(devices, 64);
  EXPECT_EQ(devices[0].part, 44);
  EXPECT_EQ(devices[1].part, 28) << "64 / 2.25";
  EXPECT_EQ(devices[2].part, 64) << "a mini-batch at most";
}

TEST(GlobalBatch, GivesASlowDeviceTimeForAStepThatItIsNotSlowWith) {
  const DeviceSpeed slow_with_few{
      .sample_seconds = 0.004, .batch_size = 64, .part = 44, .least_part = 44};
  EXPECT_EQ(period_of(slow_with_few, 44ms, 1, 64), 4) << "44 samples take four rounds";
  EXPECT_EQ(fitting_samples(slow_with_few, 4 * 44ms, 2), 44);
  EXPECT_EQ(fitting_samples(slow_with_few, 44ms, 2), 44) << "no less";
}

/// 1 ms and 0.1 ms a sample: 64 samples take 0.116 ms each, 36 of them 0.128 ms.
TEST(EfficientSamples, HaveNineTenthsOfTheSpeedOfAWholeBatch) {
  EXPECT_EQ(efficient_samples({4, 1.4e-3}, {16, 2.6e-3}, 64), 36U);
  EXPECT_EQ(efficient_samples({4, 1.4e-3}, {16, 2.6e-3}, 16), 13U);
  EXPECT_EQ(efficient_samples({4, 0.4e-3}, {16, 1.6e-3}, 64), 1U) << "in proportion";
  EXPECT_EQ(efficient_samples({4, 1e-3}, {16, 1e-3}, 64), 58U) << "all sizes take as long";
  EXPECT_EQ(efficient_samples({4, 1e-3}, {16, 0.9e-3}, 64), 58U) << "measured inexactly";
  EXPECT_EQ(efficient_samples({4, 1e-3}, {16, 8e-3}, 64), 1U) << "slower than in proportion";
  EXPECT_EQ(efficient_samples({2, 1e-3}, {2, 1e-3}, 2), 2U) << "one size";
}

TEST(GlobalBatch, IsTakenInAtMostTwoStepsARoundUnlessTheseAreWholeMiniBatches) {
  const DeviceSpeed device{.sample_seconds = 0.001, .batch_size = 64, .part = 16};
  EXPECT_EQ(fitting_samples(device, 1ms, 2), 2) << "the least step";
  EXPECT_EQ(fitting_samples(device, 10ms, 2), 10) << "what fits";
  EXPECT_EQ(fitting_samples(device, 17ms, 2), 16);
  EXPECT_EQ(fitting_samples(device, 31ms, 2), 16);
  EXPECT_EQ(fitting_samples(device, 50ms, 2), 25) << "half of what fits";
  EXPECT_EQ(fitting_samples(device, 1s, 2), 64) << "a mini-batch";
}

TEST(Period, IsTheLeastPowerOfTwoThatHoldsAProbe) {
  EXPECT_EQ(period_of(slow, 300ms, 1, 64), 1);
  EXPECT_EQ(period_of(slow, 100ms, 1, 64), 2);
  EXPECT_EQ(period_of(slow, 60ms, 1, 64), 4) << "3.3 rounds";
  EXPECT_EQ(period_of(slow, 1ms, 1, 64), 64) << "at most";
  EXPECT_EQ(period_of(slow, 300ms, 8, 64), 1);
  EXPECT_EQ(period_of(slow, 1ms, 1, 1), 1);
}

TEST(Period, StaysWhereItIsNearlyRight) {
  EXPECT_EQ(period_of(slow, 95ms, 2, 64), 2) << "2.1 rounds";
  EXPECT_EQ(period_of(slow, 90ms, 2, 64), 4) << "2.2 rounds";
  EXPECT_EQ(period_of(slow, 105ms, 4, 64), 4) << "1.9 rounds";
  EXPECT_EQ(period_of(slow, 120ms, 4, 64), 2) << "1.7 rounds";
}

TEST(Period, IsAdoptedInARoundThatBeginsRoundsOfThatPeriod) {
  EXPECT_EQ(adopted_period(1, 1, 64), 64) << "the first round begins those of any period";
  EXPECT_EQ(adopted_period(2, 1, 64), 1);
  EXPECT_EQ(adopted_period(3, 1, 64), 2);
  EXPECT_EQ(adopted_period(5, 1, 64), 4);
  EXPECT_EQ(adopted_period(5, 1, 2), 2);
  EXPECT_EQ(adopted_period(5, 1, 3), 2) << "powers of two";
  EXPECT_EQ(adopted_period(7, 5, 8), 2);
}

TEST(RoundTime, HasRoomForTheSynchronizationWhereDevicesWaitForIt) {
  EXPECT_NEAR(round_of({fast, slow}, 1ms, true), 4 * 0.05 + 0.001, 1e-6);
  EXPECT_NEAR(round_of({fast, slow}, 50ms, true), 1.0, 1e-6);
}

TEST(RoundTime, GoesHalfTheWayAndNotForATenth) {
  EXPECT_EQ(smoothed_round_time(1s, 3s), 2s);
  EXPECT_EQ(smoothed_round_time(1s, 500ms), 750ms);
  EXPECT_EQ(smoothed_round_time(1s, 1099ms), 1s);
  EXPECT_EQ(smoothed_round_time(1s, 901ms), 1s);
}

TEST(RoundTime, GrowsNoFasterThanTwofold) {
  EXPECT_EQ(smoothed_round_time(1s, 840s), 2s) << "as after two stalls in a row";
  EXPECT_EQ(smoothed_round_time(840s, 1s), 420500ms);
}

TEST(RoundTime, FitsStepsIntoIt) {
  EXPECT_EQ(fitting_samples(fast, 1s, 4), 64) << "no more than a whole mini-batch";
  EXPECT_EQ(fitting_samples(slow, 1s, 4), 20);
  EXPECT_EQ(fitting_samples(slow, 10ms, 20), 4) << "no less than a probe";
  EXPECT_EQ(fitting_samples({.sample_seconds = 0, .batch_size = 64}, 1s, 7), 7) << "unknown";
}

TEST(RoundTime, KeepsASizeThatIsNearlyRight) {
  EXPECT_EQ(fitting_samples(slow, 235ms, 4), 4) << "4.7 samples";
  EXPECT_EQ(fitting_samples(slow, 245ms, 4), 4) << "4.9 samples make no fifth";
  EXPECT_EQ(fitting_samples(slow, 255ms, 4), 5);
  EXPECT_EQ(fitting_samples(slow, 2600ms, 50), 50) << "52 samples";
  EXPECT_EQ(fitting_samples(slow, 2650ms, 50), 53);
}

TEST(RoundTime, ProbesWithASixteenth) {
  EXPECT_EQ(probe_samples(64), 4);
  EXPECT_EQ(probe_samples(31), 2);
  EXPECT_EQ(probe_samples(1), 1);
}

TEST(RoundPlan, BeginsWithRoundsNoShorterThanTheFirstSynchronization) {
  const std::vector<DeviceSpeed> devices{{.sample_seconds = 0.01, .batch_size = 64}};
  for (const bool overlap : {true, false}) {
    RoundPlan plan({.overlap = overlap});
    const auto next_round_time = [&] {
      plan.plan(devices, TimePoint());
      plan.open_next(TimePoint());
      return *plan.round_time();
    };
    EXPECT_EQ(next_round_time(), 640ms) << "a step";
    plan.observe_synchronization(1, 7s);
    EXPECT_EQ(next_round_time(), overlap ? 14s : 1280ms) << "twice 7 s, which go on meanwhile";
    plan.observe_synchronization(2, 7s);
    EXPECT_EQ(next_round_time(), overlap ? 28s : 2560ms);
  }
}

TEST(RoundPlan, TakesOneStallThatAllWorkersReportForOneOutlier) {
  RoundPlan plan({});
  for (const std::uint64_t round : {2, 2, 2, 3, 3, 3}) plan.observe_synchronization(round, 10ms);
  // Two workers report the synchronization of round 3 in round 4, one in round 5.
  for (const std::uint64_t round : {4, 4, 5}) plan.observe_synchronization(round, 5s);
  EXPECT_EQ(plan.synchronization_time(), 10ms);
  for (const std::uint64_t round : {5, 5, 6, 6}) plan.observe_synchronization(round, 10ms);
  EXPECT_EQ(plan.synchronization_time(), 10ms);
}

TEST(RoundPlan, BelievesStallsOfSeveralRounds) {
  RoundPlan plan({});
  for (const std::uint64_t round : {2, 2, 3, 3}) plan.observe_synchronization(round, 10ms);
  for (const std::uint64_t round : {4, 4, 5, 5}) plan.observe_synchronization(round, 5s);
  EXPECT_EQ(plan.synchronization_time(), 10ms) << "these may be of one synchronization";
  plan.observe_synchronization(6, 5s);
  EXPECT_EQ(plan.synchronization_time(), 5s);
}

}  // namespace
}  // namespace syncopate
