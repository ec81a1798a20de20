#include "scheme/ssgd.hpp"

#include "collective/ring.hpp"
#include "scheme/meeting.hpp"

namespace syncopate {

Outcome Ssgd::after_backward(Replica& replica, const StepFacts& facts) {
  const Clock& clock = group_.world();
  CardTable table = exchange_cards(group_, {.samples = facts.samples,
                                            .loss_sum = facts.loss_sum,
                                            .paused = facts.paused,
                                            .wishes = facts.wishes});
  const TimePoint met = clock.now();
  if (options_.weights == Weights::samples) {
    average(replica, Part::grads, facts.samples, static_cast<double>(table.meeting.samples));
  } else {
    average(replica, Part::grads, 1, group_.size());
  }
  const TimePoint averaged = clock.now();
  replica.local_step();
  samples_ += facts.samples;
  table.meeting.round = Round{++round_.value};
  return {.spent = {.update = clock.now() - averaged,
                    .communicate = averaged - met,
                    .wait = table.waited},
          .meeting = table.meeting};
}

void Ssgd::settle(Replica& replica) {
  const CardTable table = exchange_cards(group_, {.samples = samples_});
  if (table.meeting.samples == 0) {
    return;  // nothing has changed since the replicas last settled
  }
  average(replica, Part::buffers, static_cast<double>(samples_),
          static_cast<double>(table.meeting.samples));
  samples_ = 0;
}

void Ssgd::average(Replica& replica, Part part, double weight, double total) {
  const std::span<float> values = replica.view(part);
  if (group_.size() > 1 && !values.empty()) {
    weighted_mean(group_, values, weight, total);
    replica.store(part);
  }
}

}  // namespace syncopate
