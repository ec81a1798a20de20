// Goal:   a pacer that starts with the memory of another pacer makes the same decisions.
// Method: random devices report to a pacer; at a random synchronization it restarts, and a new
//         pacer with its memory starts at another time. From then on both get the same reports,
//         and must give the same decisions.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "pacer/pacer.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

/// Three devices of random speeds. Their reports go to one pacer or to several; each pacer counts
/// time from its own start.
class Devices {
 public:
  Devices(const Pacer::Options& options, std::uint64_t seed) : random_(seed) {
    for (const std::uint32_t size : options.batch_sizes) {
      const FirstPace first = first_pace(options.rule, size);
      devices_.push_back({.sample_seconds = 0.001 * std::exp(4 * random_.uniform()),
                          .samples = first.step_samples,
                          .sync_after = first.sync_after.value_or(0)});
    }
    for (Device& device : devices_) {
      begin_step(device, 0s);
    }
  }

  /// Runs until every device has entered `rounds` synchronizations; early devices wait for the
  /// others.
  template <class Report>
  void run_to(std::uint64_t rounds, const Report& report_step) {
    for (Device* next = next_before(rounds); next != nullptr; next = next_before(rounds)) {
      step(*next, report_step);
    }
  }

  /// Sets the time to 0; all devices begin the next round and receive `paces`.
  void restart(const Paces& paces) {
    for (Device& device : devices_) {
      begin_step(device, 0s);
    }
    std::for_each(paces.begin(), paces.end(), [this](const Pace& pace) { obey(pace); });
  }

 private:
  struct Device {
    double sample_seconds;
    std::uint32_t samples;  ///< samples of a step
    std::uint64_t sync_after;
    std::uint64_t round = 1;
    std::uint64_t steps = 0;
    Duration took{};
    Duration ends{};
  };

  void begin_step(Device& device, Duration now) {
    device.took =
        from_seconds(device.samples * device.sample_seconds * (0.95 + 0.1 * random_.uniform()));
    device.ends = now + device.took;
  }

  Device* next_before(std::uint64_t rounds) {
    Device* next = nullptr;
    for (Device& device : devices_) {
      if (device.round <= rounds && (next == nullptr || device.ends < next->ends)) {
        next = &device;
      }
    }
    return next;
  }

  template <class Report>
  void step(Device& device, const Report& report_step) {
    ++device.steps;
    const bool synchronizes = device.sync_after > 0 && device.steps >= device.sync_after;
    const StepReport report{.round = device.round,
                            .steps = device.steps,
                            .samples = device.samples,
                            .took = device.took,
                            .synchronizes = synchronizes};
    const auto rank = static_cast<std::uint32_t>(&device - devices_.data());
    const Duration now = device.ends;
    if (synchronizes) {
      ++device.round;
      device.steps = device.sync_after = 0;
    }
    for (const Pace& pace : report_step(Rank{rank}, report, now)) {
      obey(pace);
    }
    begin_step(device, now);
  }

  void obey(const Pace& pace) {
    Device& device = devices_[pace.worker.value];
    device.samples = pace.step_samples;
    if (pace.sync_after && pace.round == device.round) {
      device.sync_after = *pace.sync_after;
    }
  }

  Random random_;
  std::vector<Device> devices_;
};

std::string in_words(const Paces& paces) {
  std::string words;
  for (const Pace& pace : paces) {
    words += fmt::format("{}: round {} after {}, {} samples, {}; ", pace.worker.value, pace.round,
                         pace.sync_after.value_or(0), pace.step_samples, words_for(pace.reason));
  }
  return words;
}

TEST(PacerMemory, DecidesAsThePacerThatItIsOf) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    Pacer::Options options{.batch_sizes = {64, 32, 64},
                           .rule = random.below(2) == 0 ? PaceRule::timed : PaceRule::paper,
                           .overlap = random.below(2) == 0};
    const std::uint64_t rounds = 2 + random.below(6);
    Pacer original(options);
    Devices devices(options, seed);
    devices.run_to(rounds, [&](Rank rank, const StepReport& report, Duration now) {
      return original.stepped(rank, report, TimePoint(now));
    });

    constexpr Duration original_start = 1000s;
    constexpr Duration resumed_start = 3s;
    options.done = rounds;
    Pacer resumed(options);
    resumed.load(original.memory());
    const Paces first = original.restart(TimePoint(original_start));
    ASSERT_EQ(in_words(resumed.restart(TimePoint(resumed_start))), in_words(first));
    devices.restart(first);
    devices.run_to(rounds + 4, [&](Rank rank, const StepReport& report, Duration now) {
      const Paces paces = original.stepped(rank, report, TimePoint(original_start + now));
      EXPECT_EQ(in_words(resumed.stepped(rank, report, TimePoint(resumed_start + now))),
                in_words(paces));
      return paces;
    });
  }
}

TEST(PacerMemory, OfAnotherNumberOfWorkersIsRefused) {
  const Pacer two({.batch_sizes = {64, 64}});
  Pacer three({.batch_sizes = {64, 64, 64}});
  EXPECT_THROW(three.load(two.memory()), ConfigError);
}

PacerState state_of(const std::vector<double>& sample_seconds) {
  PacerState state;
  for (const double seconds : sample_seconds) {
    state.workers.emplace_back().sample_seconds = seconds;
  }
  return state;
}

TEST(SpeedShares, AreThoseOfWorkersPresent) {
  PacerState state = state_of({0.001, 0.003, 0});
  state.workers[2].present = false;
  const std::vector<double> shares = speed_shares(state);
  ASSERT_EQ(shares.size(), 3U);
  EXPECT_DOUBLE_EQ(shares[0], 0.75);
  EXPECT_DOUBLE_EQ(shares[1], 0.25);
  EXPECT_EQ(shares[2], 0);
}

TEST(SpeedShares, AreNotKnownUntilEveryWorkerIsHeard) {
  EXPECT_TRUE(speed_shares(state_of({0.001, 0})).empty());
  EXPECT_TRUE(speed_shares({}).empty());
}

}  // namespace
}  // namespace syncopate
