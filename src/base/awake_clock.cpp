#include "base/awake_clock.hpp"

#include <algorithm>

namespace syncopate {

Duration AwakeClock::now() const {
  while (true) {
    const std::uint64_t version = version_;
    const Duration::rep source = source_().count();
    const Duration::rep time = std::min<Duration::rep>(source, stands_still_) - absences_;
    if (version % 2 == 0 && version == version_) {
      return Duration(time);
    }
  }
}

void AwakeClock::beat() {
  const Duration::rep source = source_().count();
  account_for_absence(source);
  stands_still_ = source + tolerance_.count();
}

void AwakeClock::end_beats() {
  account_for_absence(source_().count());
  stands_still_ = never;
}

void AwakeClock::account_for_absence(Duration::rep source) {
  const Duration::rep absence = source - stands_still_;
  if (absence <= 0) {
    return;
  }
  ++version_;
  absences_ += absence;
  stands_still_ = source;
  ++version_;
}

}  // namespace syncopate
