#include "scheme/ssgd.hpp"

namespace syncopate {

Outcome Ssgd::after_backward(Replica& replica, const StepFacts& facts) {
  const Clock& clock = averaging_.group().world();
  ++round_.value;
  const Averaging::Result met =
      averaging_.meet(round_, card_of(facts),
                      {.model = replica.view(Part::grads), .buffers = replica.view(Part::buffers)});
  replica.store(Part::grads);
  replica.store(Part::buffers);
  const TimePoint averaged = clock.now();
  replica.local_step();
  return {.spent = {.update = clock.now() - averaged,
                    .communicate = met.communicated,
                    .wait = met.table.waited},
          .meeting = met.table.meeting};
}

std::optional<Meeting> Ssgd::leave(Replica& /*replica*/) {
  averaging_.leave();
  return std::nullopt;
}

}  // namespace syncopate
