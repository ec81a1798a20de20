#pragma once

#include <cstdint>

#include "train/phase_clock.hpp"
#include "wire/control.hpp"

namespace syncopate {

/// Where the time of a worker's steps goes, and how fast its device is by itself.
///
/// Order:  a step is `begin_step`, `begin_pass`, `forward_done`, `end_pass`, `end_step`.
/// Thread: one.
class StepTimes {
 public:
  struct Options {
    std::uint32_t batch_size = 0;  ///< of a whole step
    /// An emulated device is taken to need a third of the time of a pass for forward, as in `PacedGradientSink`.
    bool emulated = false;
    double known_throughput = 0;  ///< samples per second of the device by itself; 0: unknown
  };

  /// `clock` must outlive this.
  StepTimes(const Clock& clock, const Options& options)
      : clock_(clock), options_(options), phases_(clock) {}

  PhaseClock& phases() { return phases_; }
  const PhaseClock& phases() const { return phases_; }

  void begin_step() { busy_before_ = busy(); }
  void begin_pass() { begun_ = forward_done_ = clock_.now(); }
  void forward_done() { forward_done_ = clock_.now(); }
  /// Books the pass, the paced time of an emulated device included.
  void end_pass();
  void end_step(std::uint32_t samples);

  /// Samples per second of the device by itself in steps of a whole batch: a smaller one may cost more a sample.
  /// 0: unknown.
  double stand_alone_throughput() const;
  void put_into(wire::Heartbeat& status) const;

 private:
  Duration busy() const { return phases_.spent(Phase::data) + phases_.computing(); }

  const Clock& clock_;
  Options options_;
  PhaseClock phases_;
  Duration busy_before_{};
  TimePoint begun_{};         ///< the last pass
  TimePoint forward_done_{};  ///< likewise

  // Steps of a whole batch.
  std::uint64_t whole_steps_ = 0;
  std::uint64_t whole_samples_ = 0;
  Duration whole_busy_{};
};

}  // namespace syncopate
