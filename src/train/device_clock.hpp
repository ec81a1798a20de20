#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "device/device_profile.hpp"
#include "runtime/world.hpp"
#include "scheme/replica.hpp"
#include "train/training_clock.hpp"

namespace syncopate {

/// Passes a gradient from a backward pass on to the scheme while the pass still computes. Stops at
/// the first value that is not finite, so that it does not reach other workers. Values of an
/// emulated device are held back until the device of its profile would have them.
///
/// That device spends a third of its step in the forward pass, and then computes its gradient at an
/// even rate. In most networks the last layers have the most parameters, so that real devices have
/// the first values earlier.
///
/// Thread: one.
class PacedGradientSink final : public GradientSink {
 public:
  /// Whether values wait for `let_through`.
  enum class Hold { no, yes };

  /// Called before a pass. `to` takes its gradient, or null for none; the pass writes `gradient`.
  void begin(GradientSink* to, std::span<const float> gradient, Hold hold);

  /// Errors: those of the receiving sink.
  void ready(std::size_t begin, std::size_t end) override;

  /// Passes on the values of a step from `begun` to `due` that were held back, each when it is due,
  /// the last by `due`. Errors: those of `World::sleep_until`, and of the receiving sink.
  void let_through(World& world, TimePoint begun, TimePoint due);

  /// True if the gradient of this pass is taken while it is computed.
  bool in_use() const { return to_ != nullptr; }
  /// True if all values of this pass so far are finite.
  bool finite() const { return finite_; }

 private:
  struct Interval {
    std::size_t begin;
    std::size_t end;
  };

  GradientSink* to_ = nullptr;
  std::span<const float> gradient_;
  Hold hold_ = Hold::no;
  std::vector<Interval> held_;
  bool finite_ = true;
};

/// The begin and end of a worker's steps on its device, on the training clock. The steps of an
/// emulated device follow its profile: the machine that emulates it may be late in one step and
/// make up for it in the next.
///
/// Order:  a step is `end_pass`, if the device is emulated, then `end_step`.
/// Thread: one.
class DeviceClock {
 public:
  /// The begin and end of a step's pass on an emulated device.
  struct Pass {
    TimePoint begun;
    TimePoint due;
    bool overrun = false;  ///< the machine took longer than the device
  };
  /// The times that follow the pass of a step.
  struct StepEnd {
    Duration held_up{};  ///< by communication, by waiting for others, and in pauses of others
    Duration update{};   ///< in the local optimizer
  };

  /// `clock` must outlive this. The first step begins at once.
  DeviceClock(const TrainingClock& clock, std::optional<DevicePacer> pacer)
      : clock_(clock), pacer_(std::move(pacer)), begun_(clock.now()), machine_begun_(begun_) {}

  bool is_emulated() const { return pacer_.has_value(); }
  /// Zero if it is not known before the step.
  Duration mean_step_time(std::uint32_t samples) const;
  /// The reading at which the current step began.
  Duration begun() const { return begun_; }
  /// The current step begins at `reading`.
  void restart(Duration reading) { begun_ = machine_begun_ = reading; }
  /// The current step begins later by `pause`; earlier, if that is negative.
  void shift(Duration pause);

  /// Ends the pass of `step` over `samples` samples, which the machine has computed at `computed`.
  /// The pass leaves time for the local update, which the profile's time includes. Only for an
  /// emulated device.
  Pass end_pass(Step step, std::uint32_t samples, TimePoint computed);
  /// The step of `samples` samples has ended, and the next one begins.
  void end_step(const StepEnd& end, std::uint32_t samples);

 private:
  const TrainingClock& clock_;
  std::optional<DevicePacer> pacer_;
  Duration begun_;          ///< reading at which the current step began on the device
  Duration machine_begun_;  ///< reading at which it began on the machine
  Duration device_ends_{};  ///< reading at which the last step ended, by the profile
  Duration last_update_{};
};

}  // namespace syncopate
