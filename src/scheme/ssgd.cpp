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
  const bool by_samples = options_.weights == Weights::samples;
  const double weight = by_samples ? facts.samples : 1;
  const double total = by_samples ? static_cast<double>(table.meeting.samples) : group_.size();
  if (options_.server) {
    average_by_server(replica, weight == 0 ? 0 : static_cast<float>(weight / total), facts.samples);
  } else {
    average(replica, Part::grads, weight, total);
  }
  average(replica, Part::buffers, weight, total);
  const TimePoint averaged = clock.now();
  replica.local_step();
  table.meeting.round = Round{++round_.value};
  return {.spent = {.update = clock.now() - averaged,
                    .communicate = averaged - met,
                    .wait = table.waited},
          .meeting = table.meeting};
}

void Ssgd::average(Replica& replica, Part part, double weight, double total) {
  const std::span<float> values = replica.view(part);
  if (group_.size() > 1 && !values.empty()) {
    weighted_mean(group_, values, weight, total);
    replica.store(part);
  }
}

/// The sum comes back to where the gradient was: a server answers when it has the whole of it. Buffers
/// still go around the ring: they are few, and no server keeps them.
void Ssgd::average_by_server(Replica& replica, float share, std::uint64_t samples) {
  const std::span<float> grads = replica.view(Part::grads);
  options_.server->work({.push = grads,
                         .pull = grads,
                         .facts = {.step = round_.value + 1, .samples = samples, .weight = share}});
  replica.store(Part::grads);
}

std::optional<Meeting> Ssgd::leave(Replica& /*replica*/) {
  if (options_.server) {
    options_.server->leave();
  }
  return std::nullopt;
}

}  // namespace syncopate
