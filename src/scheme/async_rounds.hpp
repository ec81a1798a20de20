#pragma once

#include <utility>

#include "scheme/scheme.hpp"
#include "scheme/shared_model.hpp"
#include "server/server_client.hpp"

namespace syncopate {

/// The synchronization rounds of an asynchronous worker with a parameter server. Replies hold
/// totals of the job; a round holds the differences since this worker's previous round.
class ServerRounds {
 public:
  /// `start`: the server's reply when this worker began.
  explicit ServerRounds(const Reply& start) : last_(start) {}

  SyncRound next(const Reply& reply, const StepRequests& requests) {
    const Reply before = std::exchange(last_, reply);
    return {.round = Round{reply.version},
            .samples = reply.samples - before.samples,
            .loss_sum = reply.loss_sum - before.loss_sum,
            .paused = reply.paused - before.paused,
            .agreed = requests};
  }

 private:
  Reply last_;
};

/// The same for a model in shared memory, whose counters are the totals of the job.
class SharedModelRounds {
 public:
  /// `start`: the counters when this worker began. `model` outlives this.
  SharedModelRounds(const SharedModel& model, const SharedModel::Counts& start)
      : model_(model), last_(start) {}

  SyncRound next(const StepFacts& facts) {
    const SharedModel::Counts now = model_.counts();
    const SharedModel::Counts before = std::exchange(last_, now);
    return {.round = Round{now.updates},
            .samples = now.samples - before.samples,
            .loss_sum = now.loss_sum - before.loss_sum,
            .paused = facts.paused,
            .agreed = facts.requests};
  }

 private:
  const SharedModel& model_;
  SharedModel::Counts last_;
};

}  // namespace syncopate
