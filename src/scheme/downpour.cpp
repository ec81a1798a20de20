#include "scheme/downpour.hpp"

#include <algorithm>

#include "kernels/optimizer_steps.hpp"

namespace syncopate {
namespace {

void resolve_server_rate(SchemeDefaults& defaults) {
  OptionValues& options = defaults.options;
  if (defaults.usual_learning_rate && !options[option::server_learning_rate]) {
    options.set(option::server_learning_rate,
                defaults.usual_learning_rate(options[option::server_optimizer]));
  }
}

ServerPolicy optimize_on_server(const OptionValues& options) {
  return {.optimizer = ServerOptimizer{.optimizer = options[option::server_optimizer],
                                       .learning_rate = options[option::server_learning_rate]}};
}

std::unique_ptr<Scheme> make_downpour(const SchemeContext& context) {
  return std::make_unique<Downpour>(
      context.workers.world(), server_of(context),
      Downpour::Options{.push_every = context.options[option::push_every],
                        .fetch_every = context.options[option::fetch_every],
                        .weight = context.weight,
                        .start = context.server_start});
}

}  // namespace

Outcome Downpour::after_backward(Replica& replica, const StepFacts& facts) {
  const TimePoint begun = clock_.now();
  replica.clip_gradient();
  accumulate(replica.view(ReplicaVector::grads), facts);
  replica.own_step(facts.samples);
  Outcome outcome{.spent = {.update = clock_.now() - begun}};
  const bool push = pending_.step % options_.push_every == 0;
  const bool fetch = pending_.step % options_.fetch_every == 0;
  if (!push && !fetch) {
    return outcome;
  }
  const ServerClient::Result result = exchange(replica, push, fetch);
  outcome.spent.communicate = result.communicated;
  outcome.spent.wait = result.waited;
  if (result.owed) {
    outcome.push_statuses.push_back(status_of(*result.owed));
  }
  if (fetch) {  // a push without a fetch is answered later
    outcome.sync_round = rounds_.next(result.reply, facts.requests);
    outcome.spent.take_off(outcome.sync_round->paused);
    if (push) {
      outcome.push_statuses.push_back(status_of(result.reply));
    }
  }
  return outcome;
}

std::uint64_t Downpour::discard_pending() {
  const std::uint64_t discarded = pending_steps_;
  clear_pending();
  return discarded;
}

/// The reply to the last push holds the progress of the job.
std::optional<SyncRound> Downpour::flush_pending(Replica& replica) {
  if (pending_.samples == 0) {
    return std::nullopt;
  }
  return rounds_.next(exchange(replica, /*push=*/true, /*fetch=*/true).reply, {});
}

ServerClient::Result Downpour::exchange(Replica& replica, bool push, bool fetch) {
  ServerClient::Work work{.facts = pending_};
  if (push) {
    work.push = gradient_sum_;
    work.buffers = replica.view(ReplicaVector::buffers);
  }
  if (fetch) {
    work.pull = replica.view(ReplicaVector::params);
  }
  const ServerClient::Result result = server_.work(work);
  if (fetch) {
    replica.store(ReplicaVector::params);
  }
  if (push) {
    clear_pending();
  }
  return result;
}

void Downpour::accumulate(std::span<const float> gradient, const StepFacts& facts) {
  gradient_sum_.resize(gradient.size());
  add_scaled(gradient_sum_, options_.weight.of(facts.samples), gradient);
  ++pending_.step;
  ++pending_steps_;
  pending_.samples += facts.samples;
  pending_.loss_sum += facts.loss_sum;
}

void Downpour::clear_pending() {
  std::fill(gradient_sum_.begin(), gradient_sum_.end(), 0.0F);
  pending_.samples = 0;
  pending_.loss_sum = 0;
  pending_steps_ = 0;
}

const SchemeSpec& downpour_scheme() {
  static const SchemeSpec spec{
      .name = "downpour",
      .formula = "local steps; the sum of g is pushed every n steps, w fetched every m",
      .source = "Dean et al. 2012",
      .colour = "#E69F00",
      .traits = {.topology = Topology::server,
                 .sync_mode = SyncMode::asynchronous,
                 .pull = Pull::some_steps},
      .options = {spec_of(option::push_every), spec_of(option::fetch_every),
                  spec_of(option::server_optimizer), spec_of(option::server_learning_rate)},
      .resolve = resolve_server_rate,
      .server_policy = optimize_on_server,
      .make = make_downpour};
  return spec;
}

}  // namespace syncopate
