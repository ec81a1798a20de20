#include "train/phase_clock.hpp"

namespace syncopate {

void PhaseClock::add(Phase phase, Duration spent) {
  spent_[static_cast<std::size_t>(phase)] += spent;
}

Duration PhaseClock::spent(Phase phase) const {
  const Duration under_way = phase_ == phase ? clock_.now() - since_ : Duration::zero();
  return spent_[static_cast<std::size_t>(phase)] + under_way;
}

void PhaseClock::turn_to(std::optional<Phase> phase) {
  const TimePoint now = clock_.now();
  if (phase_) {
    add(*phase_, now - since_);
  }
  phase_ = phase;
  since_ = now;
}

}  // namespace syncopate
