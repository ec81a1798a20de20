// Goal:   with any devices, every round has one synchronization, each present device enters it once
//         and in time, and every round ends; if nothing fails, devices wait no longer than the
//         pacer promises.
// Method: thousands of random clusters in virtual time. `PacedDevices` checks the promises that
//         always hold; this file checks those of runs without faults.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/unit/pacer/paced_devices.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

/// Returns a random duration from `least` to `most` seconds, each decade equally likely.
Duration spread(Random& random, double least, double most) {
  return from_seconds(least * std::pow(most / least, random.uniform()));
}

std::vector<PacedDevices::Device> devices(Random& random) {
  std::vector<PacedDevices::Device> result(1 + random.below(7));
  for (auto& device : result) {
    device.sample = spread(random, 1e-3, 1e-1);
    device.batch_size = static_cast<std::uint32_t>(8 + random.below(57));
  }
  return result;
}

PacedDevices::Options with_everything(Random& random) {
  PacedDevices::Options options{.devices = devices(random),
                                .rule = random.below(2) == 0 ? PaceRule::paper : PaceRule::timed,
                                .overlap = random.below(2) == 0,
                                .latency = spread(random, 1e-5, 1e-2),
                                .synchronization = spread(random, 1e-4, 1e-1),
                                .jitter = 0.9 * random.uniform(),
                                .hiccups = 0.05 * random.uniform(),
                                .detection = spread(random, 1e-3, 10)};
  for (auto& device : options.devices) device.overhead = spread(random, 1e-5, 1e-2);
  if (random.below(3) == 0) options.round_time = spread(random, 1e-3, 10);
  if (random.below(2) == 0) options.deaths = 0.02;
  if (random.below(2) == 0) options.returns = 0.05;
  const bool may_miss_rounds = options.overlap && options.rule == PaceRule::timed;
  if (may_miss_rounds) options.longest_period = 1U << random.below(7);
  const bool divides = options.rule == PaceRule::timed && random.below(2) == 0;
  if (divides) options.global_batch = static_cast<std::uint32_t>(16 + random.below(200));
  return options;
}

TEST(PacerSchedules, HoldOneSynchronizationARoundAndEndEveryRound) {
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    PacedDevices cluster(with_everything(random), seed);
    cluster.run(12);
    ASSERT_EQ(cluster.broken(), "");
    for (const auto& synchronization : cluster.held()) {
      for (const auto& [rank, steps] : synchronization.steps)
        ASSERT_GE(steps, 1) << "worker " << rank;
    }
  }
}

/// Returns the time that a whole mini-batch takes.
Duration whole(const PacedDevices::Device& device) {
  return device.sample * device.batch_size;
}

TEST(PacerSchedules, KeepTheSlowestWaitingForNoMoreThanAFastStep) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    PacedDevices::Options options{.devices = devices(random),
                                  .rule = PaceRule::paper,
                                  .overlap = random.below(2) == 0,
                                  .synchronization = 2ms};
    const auto fastest = std::ranges::min(options.devices, {}, whole);
    const auto slowest = std::ranges::max(options.devices, {}, whole);
    PacedDevices cluster(options, seed);
    cluster.run(8);
    ASSERT_EQ(cluster.broken(), "");
    for (std::size_t i = 1; i < cluster.held().size(); ++i) {
      const auto& before = cluster.held()[i - 1];
      const auto& synchronization = cluster.held()[i];
      const Duration expected = whole(slowest) + (options.overlap ? 0ms : options.synchronization);
      ASSERT_LE(synchronization.last - before.last, expected + whole(fastest) + 1ms)
          << "round " << i + 1;
    }
  }
}

TEST(PacerSchedules, KeepFastDevicesWaitingForNoMoreThanTheirOwnStep) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    PacedDevices::Options options{.devices = devices(random),
                                  .rule = PaceRule::paper,
                                  .overlap = false,
                                  .synchronization = 2ms};
    PacedDevices cluster(options, seed);
    cluster.run(8);
    ASSERT_EQ(cluster.broken(), "");
    for (std::size_t i = 2; i < cluster.held().size(); ++i) {
      const auto& synchronization = cluster.held()[i];
      const TimePoint begun = cluster.held()[i - 1].last + options.synchronization;
      for (const auto& [rank, steps] : synchronization.steps) {
        const Duration own = whole(options.devices[rank]);
        const Duration waited = synchronization.last - begun - own * steps;
        ASSERT_LE(waited, own + 1ms + 10us) << "round " << i + 1 << ", worker " << rank;
      }
    }
  }
}

TEST(PacerSchedules, KeepEveryDeviceBusyWithOverlap) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const PacedDevices::Options options{.devices = devices(random),
                                        .longest_period = 1U << random.below(7),
                                        .latency = 100us,
                                        .synchronization = spread(random, 1e-4, 1e-1),
                                        .jitter = 0.1};
    PacedDevices cluster(options, seed);
    cluster.run(60);
    ASSERT_EQ(cluster.broken(), "");
    for (std::uint32_t rank = 0; rank < options.devices.size(); ++rank) {
      ASSERT_GE(cluster.busy_share(rank), 0.95) << "worker " << rank;
    }
  }
}

constexpr PacedDevices::Device fast_device{.sample = 1ms, .batch_size = 32};
constexpr PacedDevices::Device slow_device{.sample = 100ms, .batch_size = 32};

TEST(PacerSchedules, DoNotWaitInEachRoundForADeviceThatIsAHundredTimesSlower) {
  PacedDevices cluster({.devices = {fast_device, fast_device, slow_device},
                        .longest_period = 64,
                        .latency = 100us,
                        .synchronization = 1ms,
                        .jitter = 0.05},
                       5);
  cluster.run(100);
  ASSERT_EQ(cluster.broken(), "");
  EXPECT_EQ(cluster.period(0), 1);
  EXPECT_EQ(cluster.period(2), 8) << "two samples take 200 ms, a round 32 ms";
  const auto begin = cluster.held()[20].last;
  EXPECT_NEAR(to_seconds(cluster.held()[80].last - begin), 60 * 0.032, 0.1 * 60 * 0.032);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_GE(cluster.busy_share(rank), 0.97) << "worker " << rank;
  }
}

TEST(PacerSchedules, WaitForEveryDeviceAgainWhereTheSlowOneBecomesFast) {
  PacedDevices cluster(
      {.devices = {fast_device, fast_device, slow_device}, .longest_period = 64, .latency = 100us},
      5);
  cluster.run(100);
  ASSERT_EQ(cluster.period(2), 8);
  cluster.speed_up(2, 100);
  cluster.run(100 + 3 * 8);
  ASSERT_EQ(cluster.broken(), "");
  EXPECT_EQ(cluster.period(2), 1);
}

TEST(PacerSchedules, AreWithEveryDeviceOnceInTheLongestPeriod) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const PacedDevices::Options options{.devices = devices(random),
                                        .longest_period = 1U << random.below(7),
                                        .latency = spread(random, 1e-5, 1e-2),
                                        .synchronization = spread(random, 1e-4, 1e-1),
                                        .jitter = 0.5 * random.uniform()};
    PacedDevices cluster(options, seed);
    cluster.run(3 * 64);
    ASSERT_EQ(cluster.broken(), "");
    for (std::uint32_t rank = 0; rank < options.devices.size(); ++rank) {
      std::uint32_t missed = 0;
      for (const auto& synchronization : cluster.held()) {
        missed = synchronization.steps.contains(rank) ? 0 : missed + 1;
        ASSERT_LT(missed, options.longest_period) << "worker " << rank;
      }
    }
  }
}

TEST(PacerSchedules, AreOneStepARoundAtEqualSpeeds) {
  for (const bool overlap : {false, true}) {
    SCOPED_TRACE(overlap ? "overlap" : "no overlap");
    PacedDevices cluster({.devices = {4, {.sample = 1ms}},
                          .rule = PaceRule::paper,
                          .overlap = overlap,
                          .latency = 100us,
                          .synchronization = 2ms,
                          .jitter = 0.05},
                         17);
    cluster.run(50);
    ASSERT_EQ(cluster.broken(), "");
    for (const auto& synchronization : cluster.held()) {
      for (const auto& [rank, steps] : synchronization.steps)
        ASSERT_EQ(steps, 1) << "worker " << rank;
    }
  }
}

TEST(PacerSchedules, RepaceWithinTwoRoundsADeviceThatBecomesTenTimesSlower) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const PacedDevices::Options options{
        .devices = devices(random),
        .rule = random.below(2) == 0 ? PaceRule::paper : PaceRule::timed,
        .overlap = random.below(2) == 0,
        .latency = 10us,
        .synchronization = 1ms,
        .jitter = 0.05};
    PacedDevices cluster(options, seed);
    cluster.run(20);
    const auto rank = static_cast<std::uint32_t>(random.below(options.devices.size()));
    cluster.slow_down(rank, 10);
    cluster.run(20 + 1 + 2);
    ASSERT_EQ(cluster.broken(), "");
    const PacerState::Worker known = cluster.pacer().state().workers[rank];
    const double truth = 10 * to_seconds(options.devices[rank].sample);
    ASSERT_NEAR(known.sample_seconds, truth, 0.06 * truth);
    cluster.run(20 + 1 + 3);
    const auto& synchronization = cluster.held().back();
    const bool fits = known.step_seconds <= 1.1 * to_seconds(cluster.pacer().state().round_time);
    ASSERT_TRUE(fits || synchronization.steps.at(rank) == 1) << "worker " << rank;
  }
}

}  // namespace
}  // namespace syncopate
