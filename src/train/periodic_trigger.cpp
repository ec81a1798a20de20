#include "train/periodic_trigger.hpp"

#include <cmath>

namespace syncopate {

PeriodicTrigger::PeriodicTrigger(Every every, double steps_per_epoch)
    : every_(every), steps_per_epoch_(steps_per_epoch) {}

bool PeriodicTrigger::due(const Moment& before, const Moment& after) const {
  return every_.unit != Every::Unit::never &&
         std::floor(periods(after)) > std::floor(periods(before));
}

double PeriodicTrigger::periods(const Moment& moment) const {
  switch (every_.unit) {
    case Every::Unit::never: return 0;
    case Every::Unit::steps: return moment.step / every_.amount;
    case Every::Unit::epochs: return moment.step / (every_.amount * steps_per_epoch_);
    case Every::Unit::seconds: return to_seconds(moment.training) / every_.amount;
  }
  return 0;
}

}  // namespace syncopate
