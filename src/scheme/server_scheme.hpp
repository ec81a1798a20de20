#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "scheme/scheme_spec.hpp"
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
class ServerScheme : public Scheme, public SharesModel, public ReportsTraffic {
 public:
  std::uint64_t bytes_received() const override { return server_.bytes_received(); }
  CompressionStats compression() const override { return server_.compression(); }
  std::optional<SyncRound> leave(Replica& /*replica*/) override {
    server_.leave();
    return std::nullopt;
  }
  void take_replica(Replica& replica, const AllWorkers& workers) override;
  void rest() override { server_.rest(); }
  void take_model(Replica& replica) override {
    server_.take_model(replica.view(ReplicaVector::params), replica.view(ReplicaVector::buffers));
    replica.store(ReplicaVector::params);
    replica.store(ReplicaVector::buffers);
  }

 protected:
  /// `server` outlives this. `start`: the server's reply when this worker began.
  ServerScheme(ServerClient& server, const Reply& start) : server_(server), rounds_(start) {}

  /// The outcome of an exchange in which the server answered a push, or a push and a pull.
  Outcome outcome_of(const ServerClient::Result& result, const StepRequests& requests) {
    Outcome outcome{.spent = {.communicate = result.communicated, .wait = result.waited},
                    .sync_round = rounds_.next(result.reply, requests),
                    .push_statuses = {status_of(result.reply)}};
    outcome.spent.take_off(outcome.sync_round->paused);
    return outcome;
  }

  static PushStatus status_of(const Reply& reply) {
    return {.staleness = reply.staleness, .dropped = reply.dropped};
  }

  ServerClient& server_;
  ServerRounds rounds_;
};

/// In every step a worker pushes its gradient and pulls the parameters for the next step. The
/// server runs the optimizer. It decides when the gradient enters the model and when it answers the
/// pull (`server/consistency.hpp`); these two rules distinguish the schemes:
///
///     scheme   gradient enters the model        pull is answered
///     asgd     at once                          at once                     Dean et al. 2012
///     dc-asgd  at once, delay compensated       at once                     Zheng et al. 2017
///     ssp      at once                          within a staleness bound    Ho et al. 2013
///     backup   with the first n of its step     when that step is closed    Chen et al. 2016
///
/// Buffers are pushed with the gradient. A worker keeps its own buffers; their mean on the server
/// is evaluated and saved.
class PushPull : public ServerScheme {
 public:
  struct Options {
    PushWeight weight{};
    Reply start{};  ///< the server's reply when this worker began
  };

  /// `server` outlives this.
  PushPull(ServerClient& server, const Options& options)
      : ServerScheme(server, options.start), options_(options), step_(options.start.steps) {}

  Outcome after_backward(Replica& replica, const StepFacts& facts) override;
  std::optional<SyncRound> fetch(Replica& replica) override;

 private:
  Options options_;
  std::uint64_t step_;
};

/// Makes `PushPull` for the schemes above.
std::unique_ptr<Scheme> make_push_pull(const SchemeContext& context);

}  // namespace syncopate
