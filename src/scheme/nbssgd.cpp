#include "scheme/nbssgd.hpp"

#include <algorithm>
#include <utility>

namespace syncopate {
namespace {

/// Rounds of which a worker hears at once: the latest one, with the samples of all.
SyncRound merged(const std::optional<SyncRound>& before, SyncRound latest) {
  if (before) {
    latest.samples += before->samples;
    latest.loss_sum += before->loss_sum;
    latest.paused += before->paused;
    latest.agreed.stop |= before->agreed.stop;
    latest.own->steps += before->own->steps;
    latest.own->samples += before->own->samples;
  }
  return latest;
}

}  // namespace

Nbssgd::Nbssgd(Group& group, const Options& options)
    : clock_(group.world()),
      options_(options),
      averaging_(group, options.averaging),
      samples_(options.samples_done),
      rounds_(group, averaging_, options.rounds) {}

Outcome Nbssgd::after_backward(Replica& replica, const StepFacts& facts) {
  Outcome outcome;
  rounds_.add(replica.view(Part::grads), facts);
  take_results(replica, outcome);
  while (rounds_.pauses()) {
    await_result(replica, outcome);
  }
  return outcome;
}

std::optional<SyncRound> Nbssgd::leave(Replica& replica) {
  Outcome outcome;
  rounds_.leave();
  while (!rounds_.ended()) {
    await_result(replica, outcome);
  }
  averaging_.leave();
  return outcome.sync_round;
}

void Nbssgd::await_result(Replica& replica, Outcome& outcome) {
  const TimePoint asked = clock_.now();
  rounds_.wait();
  const Duration waited = clock_.now() - asked;
  const Duration communicating = std::min(waited, take_results(replica, outcome));
  outcome.spent.communicate += communicating;
  outcome.spent.wait += waited - communicating;
}

/// Returns how long the last of them has communicated.
Duration Nbssgd::take_results(Replica& replica, Outcome& outcome) {
  NbssgdRounds::Results results = rounds_.take(replica.view(Part::buffers));
  if (results.empty()) {
    return {};
  }
  const TimePoint begun = clock_.now();
  replica.store(Part::buffers);
  for (const auto& round : results) {
    step(replica, *round);
    SyncRound sync_round = round->sync_round;
    sync_round.own =
        OwnContribution{.steps = round->staleness.size(), .samples = round->info.samples};
    outcome.sync_round = merged(outcome.sync_round, std::move(sync_round));
    for (const std::uint64_t staleness : round->staleness) {
      outcome.push_statuses.push_back({.staleness = staleness});
    }
  }
  const Duration communicated = results.back()->communicated;
  rounds_.release(std::move(results));
  outcome.spent.update += clock_.now() - begun;
  return communicated;
}

/// A round without samples moves nothing, not even by momentum.
void Nbssgd::step(Replica& replica, const NbssgdRound& round) {
  if (round.sync_round.samples == 0) {
    return;
  }
  const std::span<const float> mean = round.gradient.all();
  std::copy(mean.begin(), mean.end(), replica.view(Part::grads).begin());
  replica.store(Part::grads);
  replica.set_learning_rate(options_.learning_rate(samples_));
  replica.local_step();
  samples_ += round.sync_round.samples;
}

}  // namespace syncopate
