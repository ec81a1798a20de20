#include "scheme/averaging.hpp"

namespace syncopate {

Averaging::Averaging(Group& group, const Options& options)
    : group_(group), options_(options), allreduce_(group, {.algorithm = options.algorithm}) {
  if (group.losses() && !options.server) {
    recovery_.emplace(group);
  }
}

Averaging::Result Averaging::meet(Round round, const Card& card, const Values& values) {
  Result result =
      recovery_ ? meet_with_those_left(round, card, values) : attempt(round, card, values);
  samples_done_ += result.table.meeting.samples;
  return result;
}

Averaging::Result Averaging::meet_with_those_left(Round round, const Card& card,
                                                  const Values& values) {
  const Clock& clock = group_.world();
  const TimePoint begun = clock.now();
  Result result;
  const auto once = [&] {
    const TimePoint settling = clock.now();
    if (const auto meeting = recovery_->settle(values)) {
      result = {.table = {.cards = {}, .meeting = *meeting}};
      result.communicated = clock.now() - settling;
    } else {
      result = attempt(round, card, values);
    }
  };
  recovery_->begin(round, values);
  bool whole = true;
  while (!recovery_->survives(once)) {
    whole = false;
  }
  if (!whole) {
    result.table.waited = clock.now() - begun - result.communicated;
  }
  recovery_->keep(result.table.meeting, values);
  return result;
}

Averaging::Result Averaging::attempt(Round round, const Card& card, const Values& values) {
  const Clock& clock = group_.world();
  CardTable table = exchange_cards(group_, card);
  table.meeting.round = round;
  const std::uint64_t done = samples_done_ + table.meeting.samples;
  const std::uint64_t coming = options_.ahead ? table.meeting.samples : 0;
  table.meeting.agreed.stop |= done + coming >= options_.samples_to_do;
  const TimePoint opened = clock.now();
  if (!options_.server) {
    allreduce_.pick(values.model.size());  // what it measures is no part of the time that sums take
  }
  const TimePoint met = clock.now();
  table.waited += met - opened;
  const bool by_samples = options_.weights == Weights::samples;
  const double weight = by_samples ? static_cast<double>(card.samples) : 1;
  const double total = by_samples ? static_cast<double>(table.meeting.samples) : group_.size();
  if (options_.server) {
    add_by_server(values.model, weight == 0 ? 0 : static_cast<float>(weight / total),
                  {.step = round.value, .samples = card.samples});
  } else {
    allreduce_.weighted_mean(values.model, weight, total);
  }
  allreduce_.weighted_mean(values.buffers, weight, total);
  return {.table = std::move(table), .communicated = clock.now() - met};
}

/// The sum comes back to where the values were: a server answers when it has the whole of them.
void Averaging::add_by_server(std::span<float> values, float share, const PushFacts& facts) {
  ServerClient::Work work{.push = values, .pull = values, .facts = facts};
  work.facts.weight = share;
  options_.server->work(work);
}

std::string Averaging::aggregate() const {
  return options_.server ? "server" : allreduce_.description();
}

void Averaging::leave() {
  if (recovery_) {
    recovery_->stay();
  }
  if (options_.server) {
    options_.server->leave();
  }
}

}  // namespace syncopate
