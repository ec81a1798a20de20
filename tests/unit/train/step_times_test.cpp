// Goal: the time of a step is booked phase by phase, and the speed of a device by itself is that of its
//       whole batches, however many smaller steps cost more a sample.
// Method: a clock that moves when told, closed values.

#include "train/step_times.hpp"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

using std::chrono::seconds;

class ManualClock : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(Duration duration) { now_ += duration; }

 private:
  TimePoint now_{seconds(1'000)};
};

/// A step over `samples`: a second of data, one of forward, `backward` and one of update; then two of waiting.
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
  wire::Heartbeat status;
  times.put_into(status);
  EXPECT_EQ(status.data_seconds(), 2);
  EXPECT_EQ(status.forward_seconds(), 2);
  EXPECT_EQ(status.backward_seconds(), 7);
  EXPECT_EQ(status.update_seconds(), 2);
  EXPECT_EQ(status.compute_seconds(), 11);
  EXPECT_EQ(status.wait_seconds(), 4);
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

}  // namespace
}  // namespace syncopate
