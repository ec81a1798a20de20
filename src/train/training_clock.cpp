#include "train/training_clock.hpp"

#include <cmath>
#include <utility>

namespace syncopate {

bool PeriodicTrigger::due(const Moment& moment) {
  const double now = periods(moment);
  return now > std::exchange(last_, now);
}

double PeriodicTrigger::periods(const Moment& moment) const {
  switch (every_.unit) {
    case Every::Unit::never: return 0;
    case Every::Unit::steps: return std::floor(moment.step / every_.amount);
    case Every::Unit::epochs: return std::floor(moment.step / (every_.amount * steps_per_epoch_));
    case Every::Unit::seconds: return std::floor(to_seconds(moment.training) / every_.amount);
  }
  return 0;
}

}  // namespace syncopate
