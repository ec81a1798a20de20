#include "train/device_clock.hpp"

#include "kernels/reduce.hpp"

namespace syncopate {

void PacedGradientSink::begin(GradientSink* to, std::span<const float> gradient, Hold hold) {
  to_ = to;
  gradient_ = gradient;
  hold_ = hold;
  held_.clear();
  finite_ = true;
}

void PacedGradientSink::ready(std::size_t begin, std::size_t end) {
  finite_ = finite_ && all_finite(gradient_.subspan(begin, end - begin));
  if (!finite_) {
    return;
  }
  if (hold_ == Hold::yes) {
    held_.push_back({begin, end});
  } else {
    to_->ready(begin, end);
  }
}

void PacedGradientSink::let_through(World& world, TimePoint begun, TimePoint due) {
  const TimePoint forward_done = begun + (due - begun) / 3;
  std::size_t made = 0;
  for (const Interval& interval : held_) {
    made += interval.end - interval.begin;
    const double share = static_cast<double>(made) / static_cast<double>(gradient_.size());
    const TimePoint when = forward_done + from_seconds(to_seconds(due - forward_done) * share);
    if (when > world.now()) {
      world.sleep_until(when);
    }
    if (finite_) {
      to_->ready(interval.begin, interval.end);
    }
  }
  held_.clear();
}

Duration DeviceClock::mean_step_time(std::uint32_t samples) const {
  return pacer_ ? pacer_->mean_step_time(samples) : Duration::zero();
}

void DeviceClock::shift(Duration pause) {
  begun_ += pause;
  machine_begun_ += pause;
}

DeviceClock::Pass DeviceClock::end_pass(Step step, std::uint32_t samples, TimePoint computed) {
  device_ends_ = pacer_->end_of_step(step, samples, begun_);
  const TimePoint begun = clock_.when(begun_);
  const TimePoint due = clock_.when(device_ends_) - last_update_;
  return {
      .begun = begun, .due = due, .overrun = computed - clock_.when(machine_begun_) > due - begun};
}

void DeviceClock::end_step(const StepEnd& end, std::uint32_t samples) {
  last_update_ = end.update;
  machine_begun_ = clock_.now();
  begun_ = pacer_ ? pacer_->begin_after(
                        {.ended = device_ends_, .held_up = end.held_up, .samples = samples},
                        machine_begun_)
                  : machine_begun_;
}

}  // namespace syncopate
