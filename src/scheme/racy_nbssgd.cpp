#include "scheme/racy_nbssgd.hpp"

#include <utility>

namespace syncopate {

bool RacyContribution::add(std::span<const float> gradient, const GradientSet& tensors,
                           const StepFacts& facts) {
  accumulator_.add(gradient, facts.samples);
  if (facts.samples > 0) {
    gradients_.add(tensors);
  }
  loss_sum_ += facts.loss_sum;
  requests_.merge(facts.requests);
  tracker_.finished_mini_batch(Round{});
  tracker_.on_signal(signals_.poll());
  if (facts.requests.stop) {
    tracker_.force_due();
  }
  if (!tracker_.due()) {
    return false;
  }
  if (tracker_.must_signal()) {
    signals_.broadcast(tracker_.open());
  }
  return true;
}

std::vector<PushStatus> RacyContribution::committed(const PushStatus& status) {
  return std::vector<PushStatus>(discard(), status);
}

std::uint64_t RacyContribution::discard() {
  const std::uint64_t mini_batches = tracker_.contribute().staleness.size();
  tracker_.reduced();  // no worker waits for a round
  accumulator_.clear();
  loss_sum_ = 0;
  gradients_ = {};
  requests_ = {};
  return mini_batches;
}

RacyNbssgd::RacyNbssgd(Group& group, SharedModel& model, const RacyOptions& options,
                       const SharedModel::Counts& start)
    : group_(group),
      model_(model),
      options_(options),
      contribution_(group, options.batch, options.signal),
      rounds_(model, start),
      read_at_(start.updates) {}

Outcome RacyNbssgd::after_backward(Replica& replica, const StepFacts& facts) {
  position_ = {.step = facts.step, .data = facts.position};
  const bool due =
      contribution_.add(replica.view(ReplicaVector::grads), replica.gradient_set(), facts);
  return due ? commit(replica, facts) : Outcome{};
}

Outcome RacyNbssgd::commit(Replica& replica, const StepFacts& facts) {
  const Clock& clock = group_.world();
  const TimePoint begun = clock.now();
  step(replica);
  const TimePoint stepped = clock.now();
  const std::uint64_t updates = add_to_model(replica);
  const SyncRound sync_round =
      rounds_.next({.paused = facts.paused, .requests = contribution_.requests()});
  const std::vector<PushStatus> push_statuses =
      contribution_.committed({.staleness = updates - read_at_});
  read(replica);
  return {.spent = {.update = stepped - begun, .communicate = clock.now() - stepped},
          .sync_round = sync_round,
          .push_statuses = push_statuses};
}

/// Returns the number of updates before this one.
std::uint64_t RacyNbssgd::add_to_model(Replica& replica) {
  model_.add_difference(replica.view(ReplicaVector::params), before_);
  model_.store_buffers(group_.rank(), replica.view(ReplicaVector::buffers),
                       contribution_.samples());
  model_.store_position(group_.rank(), position_);
  return model_.count(contribution_.samples(), contribution_.loss_sum());
}

/// Returns no round: the round that `leave` returns counts these samples.
std::optional<SyncRound> RacyNbssgd::flush_pending(Replica& replica) {
  if (contribution_.samples() > 0) {
    step(replica);
    add_to_model(replica);
    contribution_.discard();
  }
  return std::nullopt;
}

void RacyNbssgd::step(Replica& replica) {
  const std::span<const float> params = replica.view(ReplicaVector::params);
  before_.assign(params.begin(), params.end());
  const auto samples = static_cast<double>(contribution_.samples());
  contribution_.divided_into(replica.view(ReplicaVector::grads),
                             options_.mean_batch > 0 ? options_.mean_batch : samples);
  replica.store(ReplicaVector::grads);
  replica.use_gradients(contribution_.gradients());
  replica.own_step(contribution_.samples());
}

std::optional<SyncRound> RacyNbssgd::leave(Replica& replica) {
  read(replica);
  model_.read_mean_buffers(replica.view(ReplicaVector::buffers));
  replica.store(ReplicaVector::buffers);
  return rounds_.next({});
}

/// Discards the mini-batches that are not contributed yet: they belong to the former model.
void RacyNbssgd::take_replica(Replica& replica, const AllWorkers& workers) {
  contribution_.discard();
  if (workers.first) {
    model_.replace(replica.view(ReplicaVector::params));
  }
  workers.barrier();
  model_.store_buffers(group_.rank(), replica.view(ReplicaVector::buffers), /*samples=*/0);
  read_at_ = model_.counts().updates;
}

ModelParts RacyNbssgd::model(Replica& replica) const {
  const std::span<const float> own = replica.view(ReplicaVector::buffers);
  buffers_.assign(own.begin(), own.end());
  model_.read_mean_buffers(buffers_);
  return {.params = replica.view(ReplicaVector::params), .buffers = buffers_};
}

void RacyNbssgd::read(Replica& replica) {
  read_at_ = model_.counts().updates;
  model_.read(replica.view(ReplicaVector::params));
  replica.store(ReplicaVector::params);
}

RacyServerNbssgd::RacyServerNbssgd(Group& group, ServerClient& server, const RacyOptions& options,
                                   const Reply& start)
    : ServerScheme(server, start),
      options_(options),
      contribution_(group, options.batch, options.signal),
      step_(start.steps) {}

Outcome RacyServerNbssgd::after_backward(Replica& replica, const StepFacts& facts) {
  ++step_;
  const bool due =
      contribution_.add(replica.view(ReplicaVector::grads), replica.gradient_set(), facts);
  return due ? commit(replica) : Outcome{};
}

Outcome RacyServerNbssgd::commit(Replica& replica) {
  const auto samples = static_cast<double>(contribution_.samples());
  const std::span<float> gradient = replica.view(ReplicaVector::grads);
  contribution_.divided_into(gradient, samples);
  const double weight = options_.mean_batch > 0 ? samples / options_.mean_batch : 1;
  const ServerClient::Result result =
      server_.work({.push = gradient,
                    .buffers = replica.view(ReplicaVector::buffers),
                    .pull = replica.view(ReplicaVector::params),
                    .facts = {.step = step_,
                              .samples = contribution_.samples(),
                              .loss_sum = contribution_.loss_sum(),
                              .weight = static_cast<float>(weight)}});
  replica.store(ReplicaVector::params);
  Outcome outcome = outcome_of(result, contribution_.requests());
  outcome.push_statuses = contribution_.committed(status_of(result.reply));
  return outcome;
}

void RacyServerNbssgd::take_replica(Replica& replica, const AllWorkers& workers) {
  contribution_.discard();
  ServerScheme::take_replica(replica, workers);
}

std::optional<SyncRound> RacyServerNbssgd::flush_pending(Replica& replica) {
  return contribution_.samples() > 0 ? commit(replica).sync_round : std::nullopt;
}

}  // namespace syncopate
