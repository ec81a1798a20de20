// Goal:   a gradient passes the gate as it is made, up to a value that is not finite; that of an
//         emulated device when the device of its profile would have it.
// Method: a sink that notes what it takes, and when, by the simulator's clock.

#include "train/device_clock.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "sim/simulation.hpp"
#include "tests/support/manual_clock.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;

class Notes final : public GradientSink {
 public:
  void ready(std::size_t begin, std::size_t end) override {
    ranges.emplace_back(begin, end);
    if (clock != nullptr) {
      times.push_back(clock->now());
    }
  }

  const Clock* clock = nullptr;
  Ranges ranges;
  std::vector<TimePoint> times;
};

TEST(PacedGradientSink, PassesOnWhatIsFinite) {
  const std::vector<float> gradient(10, 1.0F);
  Notes notes;
  PacedGradientSink gate;
  gate.begin(&notes, gradient, PacedGradientSink::Hold::no);
  gate.ready(4, 10);
  EXPECT_EQ(notes.ranges, (Ranges{{4, 10}}));
  gate.ready(0, 4);
  EXPECT_EQ(notes.ranges, (Ranges{{4, 10}, {0, 4}}));
  EXPECT_TRUE(gate.finite());
  EXPECT_TRUE(gate.in_use());
}

TEST(PacedGradientSink, LetsNothingFollowAValueThatIsNotFinite) {
  std::vector<float> gradient(10, 1.0F);
  gradient[5] = std::numeric_limits<float>::infinity();
  Notes notes;
  PacedGradientSink gate;
  gate.begin(&notes, gradient, PacedGradientSink::Hold::no);
  gate.ready(8, 10);
  gate.ready(4, 8);
  gate.ready(0, 4);
  EXPECT_EQ(notes.ranges, (Ranges{{8, 10}}));
  EXPECT_FALSE(gate.finite());
  gradient[5] = 1;
  gate.begin(&notes, gradient, PacedGradientSink::Hold::no);
  EXPECT_TRUE(gate.finite());
}

TEST(PacedGradientSink, HoldsBackWhatAnEmulatedDeviceWouldNotHave) {
  sim::Simulation simulation({.seed = 1});
  simulation.add_node("device", [](World& world) {
    const std::vector<float> gradient(10, 1.0F);
    Notes notes;
    notes.clock = &world;
    PacedGradientSink gate;
    gate.begin(&notes, gradient, PacedGradientSink::Hold::yes);
    gate.ready(5, 10);
    gate.ready(0, 5);
    EXPECT_TRUE(notes.ranges.empty());
    const TimePoint begun = world.now();
    gate.let_through(world, begun, begun + 9s);
    EXPECT_EQ(notes.ranges, (Ranges{{5, 10}, {0, 5}}));
    EXPECT_EQ(notes.times, (std::vector{begun + 6s, begun + 9s}));
    gate.let_through(world, begun, begun + 90s);  // nothing is left of this step
    EXPECT_EQ(world.now(), begun + 9s);
  });
  simulation.run();
}

TEST(PacedGradientSink, HandsOnAtOnceWhatIsOverdue) {
  sim::Simulation simulation({.seed = 1});
  simulation.add_node("device", [](World& world) {
    const std::vector<float> gradient(10, 1.0F);
    Notes notes;
    PacedGradientSink gate;
    gate.begin(&notes, gradient, PacedGradientSink::Hold::yes);
    gate.ready(0, 10);
    const TimePoint begun = world.now();
    world.sleep_for(5s);
    gate.let_through(world, begun, begun + 3s);
    EXPECT_EQ(notes.ranges, (Ranges{{0, 10}}));
    EXPECT_EQ(world.now(), begun + 5s);
  });
  simulation.run();
}

/// Another worker saves the model for 4 s, of which this one, a device of 3 s a step, waits 3 s: it
/// gets no head start from that.
TEST(DeviceClock, StandsStillInThePauseOfAnother) {
  ManualClock machine;
  TrainingClock training(machine);
  DevicePacer::Options options{};
  options.profile.batch_time = 3s;
  options.profile.batch_samples = 1;
  DeviceClock device(training, DevicePacer(options));
  for (std::uint64_t step = 1; step <= 3; ++step) {
    machine.advance(3s);
    device.end_pass(Step{step}, 1, machine.now());
    machine.advance(4s);
    device.end_step({.held_up = 4s}, 1);
    training.take_off(3s);
    device.shift(-3s);
    EXPECT_EQ(device.begun(), training.now()) << step;
    EXPECT_EQ(training.now(), step * Duration(4s));
  }
}

}  // namespace
}  // namespace syncopate
