#pragma once

#include <cstdint>
#include <optional>
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

/// A scheme whose workers exchange values with a parameter server that keeps the model.
class ServerScheme : public Scheme {
 public:
  std::uint64_t bytes_received() const override { return server_.bytes_received(); }
  CompressionStats compression() const override { return server_.compression(); }
  std::optional<SyncRound> leave(Replica& /*replica*/) override {
    server_.leave();
    return std::nullopt;
  }

 protected:
  /// `server` outlives this. `start`: the server's reply when this worker began.
  ServerScheme(ServerClient& server, const Reply& start) : server_(server), rounds_(start) {}

  /// The outcome of an exchange in which the server answered a push, or a push and a pull.
  Outcome outcome_of(const ServerClient::Result& result, const StepRequests& requests) {
    return {.spent = {.communicate = result.communicated, .wait = result.waited},
            .sync_round = rounds_.next(result.reply, requests),
            .push_statuses = {status_of(result.reply)}};
  }

  static PushStatus status_of(const Reply& reply) {
    return {.staleness = reply.staleness, .dropped = reply.dropped};
  }

  ServerClient& server_;
  ServerRounds rounds_;
};

/// The same rounds for a model in shared memory, whose counters are the totals of the job.
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
