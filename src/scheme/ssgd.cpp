#include "scheme/ssgd.hpp"

namespace syncopate {

Ssgd::Ssgd(Group& group, const Options& options)
    : averaging_(group, options.averaging), round_(options.done) {
  if (options.balance) {
    balance_.emplace(*options.balance);
  }
}

GradientSink* Ssgd::before_backward(Replica& replica, std::uint32_t samples) {
  return replica.tells_gradients() ? averaging_.begin(samples, replica.view(Part::grads)) : nullptr;
}

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
  balance(met.table.cards);
  return {.spent = {.update = clock.now() - averaged,
                    .communicate = met.communicated,
                    .wait = met.table.waited},
          .meeting = met.table.meeting};
}

void Ssgd::balance(const std::vector<Card>& cards) {
  if (!balance_) {
    return;
  }
  std::vector<Balance::Step> steps;
  for (const Card& card : cards) {
    steps.push_back({.samples = static_cast<std::uint32_t>(card.samples), .took = card.took});
  }
  balance_->heard(steps);
}

std::uint32_t Ssgd::step_samples() const {
  return balance_ ? balance_->sizes()[averaging_.group().rank().value] : 0;
}

std::optional<Meeting> Ssgd::leave(Replica& /*replica*/) {
  averaging_.leave();
  return std::nullopt;
}

}  // namespace syncopate
