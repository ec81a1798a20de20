#include "scheme/hogwild.hpp"

#include "kernels/reduce.hpp"
#include "scheme/scheme_spec.hpp"

namespace syncopate {
namespace {

std::unique_ptr<Scheme> make_hogwild(const SchemeContext& context) {
  SharedModel& shared = shared_model_of(context, "the scheme hogwild");
  return std::make_unique<Hogwild>(
      context.workers.world(), shared,
      Hogwild::Options{
          .self = context.workers.rank(), .weight = context.weight, .start = shared.counts()});
}

}  // namespace

Outcome Hogwild::after_backward(Replica& replica, const StepFacts& facts) {
  const TimePoint begun = clock_.now();
  const std::span<float> params = replica.view(ReplicaVector::params);
  before_.assign(params.begin(), params.end());
  scale(replica.view(ReplicaVector::grads), options_.weight.of(facts.samples));
  replica.store(ReplicaVector::grads);
  replica.own_step(facts.samples);
  const TimePoint stepped = clock_.now();
  model_.add_difference(replica.view(ReplicaVector::params), before_);
  model_.store_buffers(options_.self, replica.view(ReplicaVector::buffers), facts.samples);
  model_.store_position(options_.self, {.step = facts.step, .data = facts.position});
  const std::uint64_t updates = model_.count(facts.samples, facts.loss_sum);
  const PushStatus status{.staleness = updates - read_at_};
  read_at_ = model_.counts().updates;
  read(replica);
  if (facts.requests.evaluate || facts.requests.checkpoint) {
    read_mean_buffers(replica);
  }
  return {.spent = {.update = stepped - begun, .communicate = clock_.now() - stepped},
          .sync_round = rounds_.next(facts),
          .push_statuses = {status}};
}

std::optional<SyncRound> Hogwild::leave(Replica& replica) {
  read(replica);
  read_mean_buffers(replica);
  return rounds_.next({});
}

std::optional<SyncRound> Hogwild::fetch(Replica& replica) {
  read_at_ = model_.counts().updates;
  read(replica);
  return rounds_.next({});
}

void Hogwild::take_replica(Replica& replica, const AllWorkers& workers) {
  if (workers.first) {
    model_.replace(replica.view(ReplicaVector::params));
  }
  workers.barrier();
  model_.store_buffers(options_.self, replica.view(ReplicaVector::buffers), /*samples=*/0);
  read_at_ = model_.counts().updates;
}

void Hogwild::read(Replica& replica) {
  model_.read(replica.view(ReplicaVector::params));
  replica.store(ReplicaVector::params);
}

void Hogwild::read_mean_buffers(Replica& replica) {
  model_.read_mean_buffers(replica.view(ReplicaVector::buffers));
  replica.store(ReplicaVector::buffers);
}

const SchemeSpec& hogwild_scheme() {
  static const SchemeSpec spec{
      .name = "hogwild",
      .formula = "every worker adds its steps to one w in shared memory, without locks",
      .source = "Recht et al. 2011",
      .colour = "#332288",
      .traits = {.topology = Topology::shared_memory,
                 .sync_mode = SyncMode::asynchronous,
                 .compresses = false,
                 .pull = Pull::each_step},
      .adapt = count_asynchronous_updates,
      .make = make_hogwild};
  return spec;
}

}  // namespace syncopate
