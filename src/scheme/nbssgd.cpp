#include "scheme/nbssgd.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/errors.hpp"
#include "scheme/scheme_options.hpp"
#include "scheme/scheme_spec.hpp"

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
  contribution_.divided_into(replica.view(ReplicaVector::grads), samples);
  replica.store(ReplicaVector::grads);
  replica.clip_gradient();
  const std::span<float> gradient = replica.view(ReplicaVector::grads);
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

namespace {

bool is_racy(const OptionValues& options) {
  return options[option::commit] == Commit::racy;
}

/// A racy contribution goes to a server or to shared memory, so no allreduce is chosen.
bool chooses_aggregate(const OptionValues& options) {
  return !is_racy(options) || options[option::aggregate].by_server;
}

OptionSpec aggregate_of_nbssgd() {
  OptionSpec aggregate = spec_of(option::aggregate);
  aggregate.has_effect = chooses_aggregate;
  aggregate.needs = ", where --commit racy takes only --aggregate server";
  return aggregate;
}

BatchCut batch_cut(const OptionValues& options, std::uint32_t batch_size) {
  return {.batch_size = batch_size, .mini_batches = options[option::mini_batches]};
}

/// The divisor of the learning rate where steps are one round late and the momentum is 0.9:
/// measured in bench/results/nbssgd.md.
constexpr double of_delayed_updates = 1.6;

/// With overlap a round may end while a mini-batch is computed. Each racy contribution is an update
/// of its own, as in the asynchronous schemes.
void adapt_nbssgd(SchemeTraits& traits, const SchemeJob& job) {
  const OptionValues& options = job.options;
  const bool is_ssgd =
      options[option::commit] == Commit::barrier && options[option::mini_batches] == 1;
  traits.parts_by_speed = !is_racy(options) && !is_ssgd;
  if (is_racy(options)) {
    const bool by_server = options[option::aggregate].by_server;
    traits.topology = by_server ? Topology::server : Topology::shared_memory;
    traits.compresses = by_server;
    traits.sync_mode = SyncMode::asynchronous;
    traits.pull = Pull::each_round;
    count_asynchronous_updates(traits, job);
  } else if (options[option::commit] == Commit::overlap && job.workers > 1) {
    traits.rate_divisor = of_delayed_updates;
  }
}

void check_nbssgd(const SchemeJob& job) {
  const Aggregate aggregate = job.options[option::aggregate];
  if (!chooses_aggregate(job.options) && !aggregate.is_automatic()) {
    throw ConfigError(
        "commit racy updates shared memory, or a server's model with aggregate server; found "
        "aggregate " +
        name_of_value(aggregate) + "; leave it out");
  }
}

std::unique_ptr<Scheme> make_racy(const SchemeContext& context) {
  const RacyOptions racy{.batch = batch_cut(context.options, context.batch_size),
                         .signal = context.options[option::signal],
                         .mean_batch = context.weight.unit};
  if (context.server != nullptr) {
    return std::make_unique<RacyServerNbssgd>(context.workers, *context.server, racy,
                                              context.server_start);
  }
  SharedModel& shared = shared_model_of(context, "--commit racy without --aggregate server");
  return std::make_unique<RacyNbssgd>(context.workers, shared, racy, shared.counts());
}

/// True if a worker waits for the allreduce. On a host without a spare core a worker that computes
/// during an allreduce delays it for the others: with four workers on two cores, 87 % of the
/// mini-batches were one update late. On such hosts each worker waits, which leaves its core to the
/// others.
bool waits_for_allreduce(const SchemeContext& context) {
  const bool overlaps = context.options[option::commit] == Commit::overlap;
  return !overlaps || (context.workers.size() > 1 && context.all_cores_taken());
}

std::unique_ptr<Scheme> make_nbssgd(const SchemeContext& context) {
  if (is_racy(context.options)) {
    return make_racy(context);
  }
  const std::span<const float> buffers = context.replica->view(ReplicaVector::buffers);
  Averaging::Options averaging = context.averaging;
  averaging.momentum = context.momentum;
  const bool barrier = waits_for_allreduce(context);
  averaging.ahead = !barrier;
  return std::make_unique<Nbssgd>(
      context.workers,
      Nbssgd::Options{.averaging = averaging,
                      .rounds = {.batch = batch_cut(context.options, context.batch_size),
                                 .done = context.done,
                                 .signal = context.options[option::signal],
                                 .barrier = barrier,
                                 .params = context.replica->view(ReplicaVector::params).size(),
                                 .tensors = context.replica->gradient_set().tensors(),
                                 .buffers = {buffers.begin(), buffers.end()}},
                      .samples_done = context.samples_done,
                      .learning_rate = context.learning_rate});
}

}  // namespace

Nbssgd::Nbssgd(Group& group, const Options& options)
    : AveragingScheme(group, options.averaging),
      clock_(group.world()),
      options_(options),
      samples_(options.samples_done),
      rounds_(group, averaging_, options.rounds) {}

Outcome Nbssgd::after_backward(Replica& replica, const StepFacts& facts) {
  Outcome outcome;
  rounds_.add(replica.view(ReplicaVector::grads), replica.gradient_set(),
              replica.view(ReplicaVector::buffers), facts);
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
  AveragingScheme::leave(replica);
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

/// Applies all results that have arrived. Returns the communication time of the last one.
Duration Nbssgd::take_results(Replica& replica, Outcome& outcome) {
  NbssgdRounds::Results results = rounds_.take(replica.view(ReplicaVector::buffers));
  if (results.empty()) {
    return {};
  }
  const TimePoint begun = clock_.now();
  replica.store(ReplicaVector::buffers);
  for (const auto& round : results) {
    step(replica, *round);
    SyncRound sync_round = round->sync_round;
    sync_round.own =
        OwnContribution{.steps = round->staleness.size(), .samples = round->info.samples};
    if (outcome.sync_round) {
      sync_round.add_work_of(*outcome.sync_round);
      sync_round.paused += outcome.sync_round->paused;
      sync_round.agreed.stop |= outcome.sync_round->agreed.stop;
    }
    outcome.sync_round = sync_round;
    outcome.exchanges.push_back(round->exchange);
    for (const std::uint64_t staleness : round->staleness) {
      outcome.push_statuses.push_back({.staleness = staleness});
    }
  }
  const Duration communicated = results.back()->communicated;
  rounds_.release(std::move(results));
  outcome.spent.update += clock_.now() - begun;
  return communicated;
}

/// A round without samples changes nothing, not even by momentum.
void Nbssgd::step(Replica& replica, const NbssgdRound& round) {
  if (round.sync_round.samples == 0) {
    return;
  }
  const std::span<const float> mean = round.gradient.all();
  std::copy(mean.begin(), mean.end(), replica.view(ReplicaVector::grads).begin());
  replica.store(ReplicaVector::grads);
  replica.trained_on(samples_);
  replica.set_learning_rate(options_.learning_rate(samples_));
  replica.use_gradients(round.sync_round.gradients);
  replica.local_step();
  samples_ += round.sync_round.samples;
}

/// `Nbssgd`; with the option `commit` racy, `RacyNbssgd` in shared memory or `RacyServerNbssgd`.
const SchemeSpec& nbssgd_scheme() {
  static const SchemeSpec spec{
      .name = "nbssgd",
      .formula =
          "once one worker has a batch, all contribute their finished mini-batches to a step",
      .source = "He & Dube 2022",
      .colour = "#D55E00",
      .traits = {.sync_mode = SyncMode::local_rounds},
      .options = {aggregate_of_nbssgd(), spec_of(option::mini_batches), spec_of(option::signal),
                  spec_of(option::commit)},
      .adapt = adapt_nbssgd,
      .check = check_nbssgd,
      .least_step = [](const OptionValues& options,
                       std::uint32_t batch_size) { return batch_cut(options, batch_size).size(); },
      .way_to_larger_steps = ", or fewer --mini-batches",
      .make = make_nbssgd};
  return spec;
}

}  // namespace syncopate
