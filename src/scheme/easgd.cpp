#include "scheme/easgd.hpp"

#include <utility>

#include "scheme/scheme_options.hpp"

namespace syncopate {
namespace {

void resolve_moving_rate(SchemeDefaults& defaults) {
  OptionValues& options = defaults.options;
  if (!options[option::moving_rate]) {
    options.set(option::moving_rate, 0.9 / defaults.workers);
  }
}

ServerPolicy elastic_averaging(const OptionValues& options) {
  const double rate = options[option::moving_rate].value();
  return {.consistency = {.kind = ConsistencyOptions::Kind::elastic,
                          .moving_rate = static_cast<float>(rate)}};
}

std::unique_ptr<Scheme> make_easgd(const SchemeContext& context) {
  return std::make_unique<Easgd>(context.workers.world(), server_of(context),
                                 Easgd::Options{.local_steps = context.options[option::local_steps],
                                                .start = context.server_start});
}

}  // namespace

Outcome Easgd::after_backward(Replica& replica, const StepFacts& facts) {
  const TimePoint begun = clock_.now();
  replica.own_step(facts.samples);
  const Duration update = clock_.now() - begun;
  ++since_.step;
  ++steps_since_;
  since_.samples += facts.samples;
  since_.loss_sum += facts.loss_sum;
  if (since_.step % options_.local_steps != 0) {
    return {.spent = {.update = update}};
  }
  Outcome outcome = outcome_of(exchange(replica), facts.requests);
  outcome.spent.update = update;
  return outcome;
}

std::uint64_t Easgd::discard_pending() {
  since_ = {.step = since_.step};
  return std::exchange(steps_since_, 0);
}

std::optional<SyncRound> Easgd::flush_pending(Replica& replica) {
  if (since_.samples == 0) {
    return std::nullopt;
  }
  return rounds_.next(exchange(replica).reply, {});
}

ServerClient::Result Easgd::exchange(Replica& replica) {
  // The server replies after it has received the whole replica, so the reply may overwrite it.
  const std::span<float> params = replica.view(ReplicaVector::params);
  const ServerClient::Result result = server_.work({.push = params,
                                                    .buffers = replica.view(ReplicaVector::buffers),
                                                    .pull = params,
                                                    .facts = since_});
  replica.store(ReplicaVector::params);
  since_ = {.step = since_.step};
  steps_since_ = 0;
  return result;
}

/// Workers send parameters, which no codec compresses; the moving rate replaces their weights.
const SchemeSpec& easgd_scheme() {
  static const SchemeSpec spec{
      .name = "easgd",
      .formula = "local steps; every tau steps, w_i and the server's w move towards each other",
      .source = "Zhang et al. 2015",
      .colour = "#56B4E9",
      .traits = {.topology = Topology::server,
                 .sync_mode = SyncMode::asynchronous,
                 .compresses = false,
                 .weighs_workers = false,
                 .pull = Pull::some_steps},
      .options = {spec_of(option::local_steps), spec_of(option::moving_rate)},
      .resolve = resolve_moving_rate,
      .server_policy = elastic_averaging,
      .make = make_easgd};
  return spec;
}

}  // namespace syncopate
