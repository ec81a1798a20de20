#include "base/awake_clock.hpp"

#include <algorithm>

namespace syncopate {

Duration AwakeClock::now() {
  while (true) {
    const std::uint64_t version = version_;
    const Duration::rep source = source_().count();
    const Duration::rep stands_still = stands_still_;
    const Duration::rep time = std::min(source, stands_still) - absences_;
    if (version % 2 == 0 && version == version_) {
      beat_of_reader(source, stands_still);
      return Duration(time);
    }
  }
}

/// Beats if the reader comes in time. A later reader leaves the absence to the task, which measures
/// it.
void AwakeClock::beat_of_reader(Duration::rep source, Duration::rep stands_still) {
  const Duration::rep left = stands_still - source;
  if (left > 0 && left < tolerance_.count() / 2) {
    stands_still_.compare_exchange_strong(stands_still, source + tolerance_.count());
  }
}

void AwakeClock::beat() {
  const Duration::rep source = source_().count();
  account_for_absence(source);
  const Duration::rep next = source + tolerance_.count();
  Duration::rep stands_still = stands_still_;
  while ((stands_still < next || stands_still == never) &&
         !stands_still_.compare_exchange_weak(stands_still, next)) {  // a reader has beaten
  }
}

void AwakeClock::end_beats() {
  account_for_absence(source_().count());
  stands_still_ = never;
}

void AwakeClock::account_for_absence(Duration::rep source) {
  Duration::rep stands_still = stands_still_;
  while (source > stands_still) {
    ++version_;
    if (stands_still_.compare_exchange_strong(stands_still, source)) {  // else a reader has beaten
      absences_ += source - stands_still;
    }
    ++version_;
  }
}

}  // namespace syncopate
