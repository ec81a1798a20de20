#include "scheme/server_meetings.hpp"

#include <utility>

namespace syncopate {

SyncRound ServerRounds::next(const Reply& reply, const StepRequests& requests) {
  const Reply before = std::exchange(last_, reply);
  return {.round = Round{reply.version},
          .samples = reply.samples - before.samples,
          .loss_sum = reply.loss_sum - before.loss_sum,
          .paused = reply.paused - before.paused,
          .agreed = requests};
}

}  // namespace syncopate
