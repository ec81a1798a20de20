#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "base/time.hpp"

namespace syncopate {

/// What a worker's time goes into.
enum class Phase {
  data,         ///< until a batch was there
  forward,      ///< forward pass; an emulated device's paced time, too
  backward,     ///< likewise
  update,       ///< in the local optimizer
  communicate,  ///< moving bytes
  wait,         ///< for others who were not there yet
};

inline constexpr std::size_t phases = 6;

/// Adds up a worker's time by phase. Time outside any phase is counted in none.
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
      clock_.turn_to(phase);
    }
    ~Scope() { clock_.turn_to(before_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PhaseClock& clock_;
    std::optional<Phase> before_;
  };

  /// Scopes end in the reverse of the order in which they began.
  Scope enter(Phase phase) { return Scope(*this, phase); }

  /// Counts time that someone else has measured, outside any phase of this clock.
  void add(Phase phase, Duration spent);

  /// So far, the phase under way included.
  Duration spent(Phase phase) const;
  /// Forward, backward and update together.
  Duration computing() const {
    return spent(Phase::forward) + spent(Phase::backward) + spent(Phase::update);
  }

 private:
  void turn_to(std::optional<Phase> phase);

  const Clock& clock_;
  std::array<Duration, phases> spent_{};
  std::optional<Phase> phase_;
  TimePoint since_;
};

/// The training clock: seconds since the first step, pauses for evaluation and checkpoints excluded.
///
/// Every worker takes off the same pauses, so that the clocks of all show the same time.
class TrainingClock {
 public:
  /// Starts at once, at `reading`: 0, or where a resumed run had stopped. `clock` must outlive this.
  explicit TrainingClock(const Clock& clock, Duration reading = Duration::zero())
      : clock_(clock), start_(clock.now() - reading) {}

  /// What it shows. It goes back by what is taken off.
  Duration now() const { return clock_.now() - start_; }
  /// When it will show `reading`, if nothing is taken off until then.
  TimePoint when(Duration reading) const { return start_ + reading; }
  void take_off(Duration pause) { start_ += pause; }

 private:
  const Clock& clock_;
  TimePoint start_;  ///< moved forward by each pause
};

}  // namespace syncopate
