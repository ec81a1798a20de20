#pragma once

#include <utility>

#include "scheme/scheme.hpp"
#include "scheme/shared_model.hpp"

namespace syncopate {

/// Turns the counts of a shared model into meetings: what the job has done since the last one.
class SharedModelRounds {
 public:
  /// `start`: the counts when this worker began. `model` outlives this.
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
