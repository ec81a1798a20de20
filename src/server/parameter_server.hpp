#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "runtime/world.hpp"
#include "server/consistency.hpp"
#include "server/messages.hpp"
#include "server/shard_store.hpp"
#include "server/worker_connection.hpp"
#include "telemetry/histogram.hpp"

namespace syncopate {

/// One shard of a parameter server: it handles requests one at a time, in the order in which they
/// arrive, and is the only owner of its state. `Consistency` decides which workers to answer.
///
/// Thread: one.
class ParameterServer {
 public:
  struct Options {
    std::vector<NodeId> workers;                     ///< by rank
    std::vector<NodeId> servers;                     ///< by shard, this one included
    Duration wait_limit = std::chrono::seconds(60);  ///< for values that a request has announced
    Compression compression{};                       ///< the same as the workers'
    WaitArbiter* arbiter = nullptr;  ///< decides about longer waits; null: they end at the limit
  };

  /// A worker that the server has dropped because of a message that it cannot accept.
  struct Rejection {
    NodeId worker;
    std::string reason;
  };

  /// Requests of other shards that the caller has to answer, and a rejection that it has to report.
  struct ShardRequests {
    bool state = false;   ///< shard 0 asks for the state of this shard
    bool finish = false;  ///< shard 0 has asked for the last state
    std::optional<Rejection> rejected{};
  };

  /// `store` and `consistency` outlive this.
  ParameterServer(World& world, ShardStore& store, Consistency& consistency, Options options);

  /// Handles the next request, if one arrives before `deadline`. Drops, with one warning per node,
  /// requests of nodes that are neither workers nor servers of the job.
  /// Errors: ProtocolError if a request of another server is invalid; the error that cancelled the
  ///         world.
  ShardRequests serve(TimePoint deadline);
  /// Continues without a worker that is lost. Has no effect if the worker has left.
  void drop(Rank worker);
  /// Sends a request to another server.
  void send(std::uint32_t shard, const Request& request);

  /// The training clock that replies carry from now on.
  void set_clock(Duration training, Duration paused);

  bool all_started() const { return started_.size() >= options_.workers.size(); }
  /// True once every worker has left or is lost, and those that take the final model have it.
  bool all_gone() const { return gone_.size() >= options_.workers.size() && taking_.empty(); }
  Duration busy() const { return busy_; }
  /// The number of waiting requests each time one was taken, including that one.
  const Histogram& queue_length() const { return queue_length_; }

 private:
  void receive_requests(TimePoint deadline);
  void lost(const PeerLost& loss);
  ShardRequests handle(const Message& message);
  ShardRequests handle_or_reject(Rank worker, const Message& message);
  void ignore(NodeId sender);
  void handle_worker(Rank worker, const Request& request);
  ShardRequests handle_server(const Request& request);
  void upload(Rank worker);
  void start(Rank worker);
  void work(Rank worker, const Request& request);
  void rest(Rank worker);
  void leave(Rank worker, bool takes_model);
  void send_model(Rank worker);
  void answer(const std::vector<Rank>& workers);
  void answer(Rank worker);
  void answer_start(Rank worker);
  void send_held(Rank worker);
  Reply reply_to(Rank worker);
  WorkerConnection& connection(Rank worker) { return connections_[worker.value]; }
  std::optional<Rank> rank_of(NodeId node) const;

  World& world_;
  ShardStore& store_;
  Consistency& consistency_;
  Options options_;
  std::unique_ptr<Codec> codec_;               ///< null where values travel uncompressed
  std::vector<WorkerConnection> connections_;  ///< by rank
  std::deque<Message> requests_;
  std::set<Rank> starting_;  ///< they wait for a model
  std::set<Rank> started_;
  std::set<Rank> resting_;
  std::set<Rank> gone_;
  std::set<Rank> taking_;     ///< gone, but will still ask for the model
  std::set<NodeId> ignored_;  ///< nodes whose requests are dropped
  Duration training_{};
  Duration paused_{};
  Duration busy_{};
  Histogram queue_length_;
};

}  // namespace syncopate
