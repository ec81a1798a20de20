#include "scheme/local.hpp"

namespace syncopate {

Outcome Local::after_backward(Replica& replica, const StepFacts& facts) {
  const TimePoint start = clock_.now();
  replica.local_step();
  ++round_.value;
  return {.spent = {.update = clock_.now() - start},
          .meeting = Meeting{.round = round_,
                             .samples = facts.samples,
                             .loss_sum = facts.loss_sum,
                             .paused = facts.paused,
                             .agreed = facts.wishes}};
}

}  // namespace syncopate
