// Goal: an emulated device follows its profile: its times are proportional to the samples, jitter
//       has the stated mean and spread, outages have the stated length, and equal seeds give equal
//       times.
// Method: closed values without jitter; moments over many steps with jitter; outages are compared
//       with a device that is simulated in small pieces of time.

#include "device/device_profile.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/errors.hpp"
#include "base/random.hpp"

namespace syncopate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

DevicePacer::Options options_of(Duration batch_time, double jitter = 0) {
  DevicePacer::Options options;
  options.profile = {"device", batch_time, 64, jitter, std::nullopt};
  return options;
}

/// Returns the options of a single device, so that every outage hits it.
DevicePacer::Options with_outages(Duration batch_time, Duration every, Duration lasting) {
  auto options = options_of(batch_time);
  options.pauses = PauseProfile{every, lasting};
  return options;
}

TEST(DeviceProfile, TellsItsSpeed) {
  EXPECT_DOUBLE_EQ((DeviceProfile{"d", milliseconds(20), 64, 0, {}}).samples_per_second(), 3200);
}

TEST(DevicePacer, TakesAPartOfTheTimeInAStepOfAnySize) {
  auto options = options_of(milliseconds(64));
  options.profile.step_overhead = milliseconds(32);
  options.time_scale = 2;
  const DevicePacer pacer(options);
  EXPECT_EQ(pacer.mean_step_time(64), milliseconds(128));
  EXPECT_EQ(pacer.mean_step_time(16), milliseconds(80));
  EXPECT_EQ(pacer.mean_step_time(0), milliseconds(0)) << "no step";
}

TEST(DevicePacer, TakesTimeInProportionToSamplesAndScale) {
  auto options = options_of(milliseconds(64));
  const DevicePacer plain(options);
  EXPECT_EQ(plain.end_of_step(Step{0}, 64, seconds(5)), seconds(5) + milliseconds(64));
  EXPECT_EQ(plain.end_of_step(Step{0}, 16, seconds(5)), seconds(5) + milliseconds(16));
  EXPECT_EQ(plain.end_of_step(Step{9}, 0, seconds(5)), seconds(5));
  options.time_scale = 2.5;
  const DevicePacer scaled(options);
  EXPECT_EQ(scaled.mean_step_time(64), milliseconds(160));
  EXPECT_EQ(scaled.end_of_step(Step{0}, 64, seconds(5)), seconds(5) + milliseconds(160));
}

TEST(DevicePacer, JittersAroundTheMean) {
  for (const double jitter : {0.05, 0.5}) {
    auto options = options_of(milliseconds(100), jitter);
    options.seed = 42;
    const DevicePacer pacer(options);
    constexpr int steps = 40'000;
    double sum = 0;
    double squares = 0;
    for (std::uint64_t step = 0; step < steps; ++step) {
      const double time = to_seconds(pacer.end_of_step({step}, 64, Duration::zero())) / 0.1;
      EXPECT_GT(time, 0);
      sum += time;
      squares += time * time;
    }
    const double mean = sum / steps;
    // Five standard errors; the second moment has a heavier tail and so a larger tolerance.
    EXPECT_NEAR(mean, 1, 5 * jitter / std::sqrt(steps));
    EXPECT_NEAR(std::sqrt(squares / steps - mean * mean), jitter, 0.05 * jitter);
  }
}

TEST(DevicePacer, DrawsJitterBySeedRankAndStep) {
  auto options = options_of(milliseconds(100), 0.1);
  const auto time = [&](std::uint64_t seed, std::uint32_t rank, std::uint64_t step) {
    options.seed = seed;
    options.rank = Rank{rank};
    return DevicePacer(options).end_of_step({step}, 64, Duration::zero());
  };
  EXPECT_EQ(time(1, 2, 3), time(1, 2, 3));
  EXPECT_NE(time(1, 2, 3), time(2, 2, 3));
  EXPECT_NE(time(1, 2, 3), time(1, 1, 3));
  EXPECT_NE(time(1, 2, 3), time(1, 2, 4));
  EXPECT_NE(time(1, 2, 3), time(1, 3, 2));
}

TEST(DevicePacer, MovesAStepBackByItsOverlapWithAnOutage) {
  // Outages are [10, 13), [20, 23), [30, 33) … s; a step has 4 s of work.
  const DevicePacer pacer(with_outages(seconds(4), seconds(10), seconds(3)));
  const auto end = [&](Duration start) { return pacer.end_of_step(Step{0}, 64, start); };
  EXPECT_EQ(end(seconds(0)), seconds(4));
  EXPECT_EQ(end(seconds(6)), seconds(10));   // ends when the outage begins
  EXPECT_EQ(end(seconds(8)), seconds(15));   // interrupted
  EXPECT_EQ(end(seconds(10)), seconds(17));  // begins when the outage begins
  EXPECT_EQ(end(seconds(12)), seconds(17));  // begins within the outage
  EXPECT_EQ(end(seconds(13)), seconds(17));  // begins when the outage ends
}

TEST(DevicePacer, StandsStillWithoutSamplesToo) {
  const DevicePacer pacer(with_outages(seconds(4), seconds(10), seconds(3)));
  EXPECT_EQ(pacer.end_of_step(Step{0}, 0, seconds(9)), seconds(9));
  EXPECT_EQ(pacer.end_of_step(Step{0}, 0, seconds(11)), seconds(13));
}

TEST(DevicePacer, WorksThroughManyOutages) {
  // From [10, 19) on, 1 s of work fits between outages of 9 s, so 12 s of work end in the third
  // gap.
  const DevicePacer pacer(with_outages(seconds(12), seconds(10), seconds(9)));
  EXPECT_EQ(pacer.end_of_step(Step{0}, 64, Duration::zero()), seconds(10 + 9 + 1 + 9 + 1));
}

TEST(DevicePacer, ScalesOutages) {
  auto options = with_outages(seconds(4), seconds(10), seconds(3));
  options.time_scale = 2;
  EXPECT_EQ(DevicePacer(options).end_of_step(Step{0}, 64, seconds(16)), seconds(30));
}

/// Returns the end of a step by the definition: in each second the device works unless it has an
/// outage.
Duration end_by_pieces(const std::vector<bool>& is_out, Duration start, Duration work) {
  auto second = static_cast<std::size_t>(start / seconds(1));
  for (Duration left = work; left > Duration::zero(); ++second) {
    left -= is_out[second] ? Duration::zero() : seconds(1);
  }
  return seconds(second);
}

TEST(DevicePacer, EqualsADeviceThatMovesInSmallPieces) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const Duration every = seconds(2 + random.below(9));
    const Duration lasting = seconds(1 + random.below(every / seconds(1) - 1));
    const Duration work = seconds(1 + random.below(60));
    auto options = with_outages(work, every, lasting);
    options.devices = 2;
    options.seed = seed;
    const DevicePacer pacer(options);
    // The seconds of outages are those in which a step without samples does not end at once.
    std::vector<bool> is_out;
    for (int second = 0; second < 2'000; ++second) {
      is_out.push_back(pacer.end_of_step(Step{0}, 0, seconds(second)) != seconds(second));
    }
    for (int trial = 0; trial < 50; ++trial) {
      const Duration start = seconds(random.below(200));
      const Duration end = pacer.end_of_step(Step{0}, 64, start);
      const Duration expected = end_by_pieces(is_out, start, work);
      ASSERT_EQ(end, expected) << "start " << to_seconds(start) << ", work " << to_seconds(work);
    }
  }
}

TEST(DevicePacer, GivesEveryOutageToExactlyOneDevice) {
  constexpr std::uint32_t devices = 8;
  auto options = with_outages(seconds(1), seconds(60), seconds(30));
  options.devices = devices;
  options.seed = 3;
  std::vector<int> hits(devices);
  for (int outage = 1; outage <= 800; ++outage) {
    int out = 0;
    for (std::uint32_t rank = 0; rank < devices; ++rank) {
      options.rank = Rank{rank};
      const Duration inside = seconds(60 * outage + 10);
      const bool is_hit =
          DevicePacer(options).end_of_step(Step{0}, 64, inside) != inside + seconds(1);
      hits[rank] += is_hit ? 1 : 0;
      out += is_hit ? 1 : 0;
    }
    ASSERT_EQ(out, 1);
  }
  for (const int count : hits) {
    EXPECT_NEAR(count, 100, 50);  // binomial, standard deviation 9.4
  }
}

TEST(DevicePacer, BeginsAStepWhereTheLastEndedHoweverLateTheMachineIs) {
  const DevicePacer pacer(options_of(milliseconds(64)));
  const DevicePacer::Ended step{.ended = seconds(5), .samples = 8};
  EXPECT_EQ(pacer.begin_after(step, seconds(5)), seconds(5));
  EXPECT_EQ(pacer.begin_after(step, seconds(5) + milliseconds(3)), seconds(5));
  EXPECT_EQ(pacer.begin_after(step, seconds(5) - milliseconds(1)), seconds(5));
}

TEST(DevicePacer, LosesWhatTheMachineIsLateByMoreThanAStep) {
  const DevicePacer pacer(options_of(milliseconds(64)));
  const DevicePacer::Ended step{.ended = seconds(5), .samples = 8};
  EXPECT_EQ(pacer.begin_after(step, seconds(5) + milliseconds(11)), seconds(5) + milliseconds(3));
}

TEST(DevicePacer, BeginsAStepLaterByWhatHeldItUp) {
  const DevicePacer pacer(options_of(milliseconds(64)));
  const DevicePacer::Ended step{.ended = seconds(5), .held_up = milliseconds(40), .samples = 8};
  EXPECT_EQ(pacer.begin_after(step, seconds(5) + milliseconds(41)), seconds(5) + milliseconds(40));
  // A delay of the machine while the step is held up counts only once.
  EXPECT_EQ(pacer.begin_after(step, seconds(5) + milliseconds(30)), seconds(5) + milliseconds(30));
}

TEST(DevicePacer, RefusesWhatCannotBe) {
  auto options = options_of(seconds(1));
  for (const double scale : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    options.time_scale = scale;
    EXPECT_THROW(DevicePacer{options}, ConfigError);
  }
  EXPECT_THROW(DevicePacer{with_outages(seconds(1), seconds(5), seconds(5))}, ConfigError);
}

}  // namespace
}  // namespace syncopate
