#include "scheme/server_scheme.hpp"

namespace syncopate {

/// After the first barrier the shards have taken all earlier pushes, so the first worker uploads
/// the model. After the second one they have the model, so the other workers download it.
void ServerScheme::take_replica(Replica& replica, const AllWorkers& workers) {
  const std::span<float> params = replica.view(ReplicaVector::params);
  const std::span<float> buffers = replica.view(ReplicaVector::buffers);
  server_.settle();
  workers.barrier();
  if (workers.first) {
    server_.upload(params, buffers);
    server_.start(params, buffers);
  }
  workers.barrier();
  if (!workers.first) {
    server_.start(params, buffers);
  }
  replica.store(ReplicaVector::params);
  replica.store(ReplicaVector::buffers);
}

Outcome PushPull::after_backward(Replica& replica, const StepFacts& facts) {
  replica.clip_gradient();
  const ServerClient::Result result =
      server_.work({.push = replica.view(ReplicaVector::grads),
                    .buffers = replica.view(ReplicaVector::buffers),
                    .pull = replica.view(ReplicaVector::params),
                    .facts = {.step = ++step_,
                              .samples = facts.samples,
                              .loss_sum = facts.loss_sum,
                              .weight = options_.weight.of(facts.samples)}});
  replica.store(ReplicaVector::params);
  return outcome_of(result, facts.requests);
}

/// A pull without a push is answered at once: it waits for no other worker's step.
std::optional<SyncRound> PushPull::fetch(Replica& replica) {
  const ServerClient::Result result = server_.work({.pull = replica.view(ReplicaVector::params)});
  replica.store(ReplicaVector::params);
  return rounds_.next(result.reply, {});
}

std::unique_ptr<Scheme> make_push_pull(const SchemeContext& context) {
  return std::make_unique<PushPull>(
      server_of(context),
      PushPull::Options{.weight = context.weight, .start = context.server_start});
}

}  // namespace syncopate
