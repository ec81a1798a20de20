#include "scheme/server_scheme.hpp"

namespace syncopate {

Outcome PushPull::after_backward(Replica& replica, const StepFacts& facts) {
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

std::unique_ptr<Scheme> make_push_pull(const SchemeContext& context) {
  return std::make_unique<PushPull>(
      server_of(context),
      PushPull::Options{.weight = context.weight, .start = context.server_start});
}

}  // namespace syncopate
