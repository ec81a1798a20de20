#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/time.hpp"
#include "telemetry/metrics.hpp"

namespace syncopate {

/// A use of a worker's time.
enum class Phase {
  data,         ///< waiting for a batch
  forward,      ///< forward pass, with its part of an emulated device's paced time
  backward,     ///< backward pass, also with its part of that time
  update,       ///< local optimizer
  communicate,  ///< moving bytes
  wait,         ///< for workers that are not ready yet
};

inline constexpr std::size_t phases = 6;

/// Counts a worker's time by phase. Time outside any phase is not counted.
///
/// Thread: one.
class PhaseClock {
 public:
  /// `clock` must outlive this.
  explicit PhaseClock(const Clock& clock) : clock_(clock) {}

  /// Counts time into a phase while it lives, then into the phase before it.
  class [[nodiscard]] Scope {
   public:
    Scope(PhaseClock& clock, Phase phase) : clock_(clock), before_(clock.phase_) {
      clock_.switch_to(phase);
    }
    ~Scope() { clock_.switch_to(before_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PhaseClock& clock_;
    std::optional<Phase> before_;
  };

  /// Scopes end in the reverse of the order in which they began.
  Scope enter(Phase phase) { return Scope(*this, phase); }

  /// Counts time that was measured elsewhere, outside any phase of this clock.
  void add(Phase phase, Duration spent);

  /// The time so far, the phase under way included.
  Duration spent(Phase phase) const;
  /// Forward, backward and update together.
  Duration computing() const {
    return spent(Phase::forward) + spent(Phase::backward) + spent(Phase::update);
  }

 private:
  void switch_to(std::optional<Phase> phase);

  const Clock& clock_;
  std::array<Duration, phases> spent_{};
  std::optional<Phase> phase_;
  TimePoint since_;
};

/// The times of a pass.
struct PassTimes {
  TimePoint begun;
  Duration forward{};
  Duration whole{};
};

/// Measures the phases of a worker's steps, and how fast its device is by itself.
///
/// Order:  a step is `begin_step`, `begin_pass`, `forward_done`, `end_pass`, `end_step`.
/// Thread: one.
class StepTimes {
 public:
  struct Options {
    std::uint32_t batch_size = 0;  ///< of a whole step
    /// An emulated device spends a third of a pass in forward, as in `PacedGradientSink`.
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
  /// Counts the pass, the paced time of an emulated device included.
  PassTimes end_pass();
  void end_step(std::uint32_t samples);

  /// Samples per second of the device by itself in steps of a whole batch: a sample of a smaller
  /// one may take longer. 0: unknown.
  double stand_alone_throughput() const;
  void report(MetricValues& metrics) const;

 private:
  Duration busy() const { return phases_.spent(Phase::data) + phases_.computing(); }

  const Clock& clock_;
  Options options_;
  PhaseClock phases_;
  Duration busy_before_{};
  TimePoint begun_{};         ///< when the last pass began
  TimePoint forward_done_{};  ///< of the last pass

  // Steps of a whole batch.
  std::uint64_t whole_steps_ = 0;
  std::uint64_t whole_samples_ = 0;
  Duration whole_busy_{};
};

/// Predicts an upper bound of a device's next step from earlier ones: the longest time per sample
/// of the last 64 steps, times the samples of the step.
class StepForecast {
 public:
  /// Notes a step. One without samples is ignored.
  void took(std::uint32_t samples, Duration duration);

  bool known() const { return !sample_seconds_.empty(); }
  /// Zero, if unknown.
  Duration longest(std::uint32_t samples) const;

 private:
  std::deque<double> sample_seconds_;
};

}  // namespace syncopate
