#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "codec/error_feedback.hpp"
#include "runtime/waits.hpp"
#include "runtime/world.hpp"
#include "server/last_sent_copy.hpp"
#include "server/messages.hpp"
#include "server/shard_store.hpp"

namespace syncopate {

/// A worker's side of a parameter server with one or more shards.
///
/// Thread: one.
class ServerClient {
 public:
  struct Options {
    std::vector<NodeId> servers;                     ///< by shard
    Duration wait_limit = std::chrono::seconds(60);  ///< the shortest limit of a wait
    WaitArbiter* arbiter = nullptr;                  ///< decides about longer waits; null: they end
    /// Compression of pushes, with error feedback, and of pulls, as differences to the last
    /// received parameters. It is the same as the servers'.
    Compression compression{};
    bool compress_remote = false;  ///< values in shared memory are not compressed
    bool takes_model = false;      ///< calls `take_model` after `leave`
  };

  /// One exchange with every shard: a push, a pull or both.
  struct Work {
    /// One value per parameter; empty: none. The shards may use and change values in shared memory
    /// until the answer (`dc-asgd` and `easgd` do).
    std::span<const float> push{};
    std::span<const float> buffers{};  ///< the worker's own, with a push
    std::span<float> pull{};           ///< filled; empty: none
    PushFacts facts{};
  };

  struct Result {
    Reply reply;                  ///< of shard 0; `steps`: the least of all shards
    std::optional<Reply> owed{};  ///< the reply to the previous call, if that only pushed
    Duration communicated{};
    Duration waited{};  ///< while an answer was held for other workers
  };

  ServerClient(World& world, Options options);

  /// Uploads the job's first model, or a model to continue from while no worker has work under way.
  void upload(std::span<const float> params, std::span<const float> buffers);
  /// Waits for the answer to the last call of `work`, if that only pushed.
  void settle() { await_owed(); }
  /// Downloads the model, once the shards have one, and this worker's own buffers.
  Reply start(std::span<float> params, std::span<float> buffers);

  /// Pushes, pulls or both. A call with a pull does not send values in shared memory that a shard
  /// of the same host reaches. A call that only pushes returns when its values have been sent; the
  /// next call waits for its answer.
  /// Errors: PeerLost; the error that cancelled the world; without an arbiter RanksMissing, with
  ///         the workers that a shard waited for.
  Result work(const Work& work);

  /// Statistics of the compression of pushes.
  CompressionStats compression() const {
    return feedback_ ? feedback_->stats() : CompressionStats{};
  }

  /// This worker holds no other one up until its next call of `work`.
  void rest();
  /// Leaves the shards, after this worker's last push.
  void leave();
  /// Once all workers have left: downloads the parameters, and the mean of all buffers. Errors:
  /// PeerLost; the error that cancelled the world.
  void take_model(std::span<float> params, std::span<float> buffers);

  /// Bytes of received parameters and answers.
  std::uint64_t bytes_received() const { return bytes_received_; }

 private:
  using Transfers = std::vector<std::unique_ptr<Transfer>>;

  template <class Value>
  std::span<Value> part_of(std::span<Value> values, std::size_t shard) const;
  void send(NodeId shard, const Request& request);
  void download(Request::Kind kind, std::span<float> params, std::span<float> buffers);
  Request request_for(std::size_t shard, const Work& work) const;
  bool shares_memory(std::size_t shard) const;
  Transfers begin_pull(std::span<float> into, const std::vector<Request>& requests);
  std::span<std::byte> expected(std::size_t shard, std::span<float> part);
  void take_pulled(std::span<float> into, const std::vector<Request>& requests);
  std::span<const std::byte> encoded(std::span<const float> push, std::size_t shard);
  Transfers begin_push(const Work& work, const std::vector<Request>& requests);
  void send_buffers(std::span<const float> buffers, NodeId node, Transfers& transfers);
  void receive_buffers(std::size_t shard, std::span<float> into);
  std::optional<Reply> await_owed();
  void await_answers();
  Reply await_answer(NodeId shard);
  Message next_reply(NodeId shard, const std::vector<Rank>& blamed);
  void finish(const Transfers& sent);
  void await_values(const Transfers& pulled, const std::vector<Rank>& shards);
  Rank rank_of(NodeId shard) const;
  std::vector<Rank> all_shards() const;
  TimePoint deadline() const;  ///< of a send

  World& world_;
  Options options_;
  Waits waits_;
  std::vector<bool> reaches_memory_;       ///< by shard: it reaches this worker's memory
  std::optional<ErrorFeedback> feedback_;  ///< of pushes; empty where they are not compressed
  std::vector<std::vector<std::byte>> push_frames_;  ///< by shard
  std::vector<LastSentCopy> copies_;                 ///< by shard
  Reply last_{};
  bool owes_answers_ = false;  ///< the last call only pushed
  Duration held_{};            ///< of the exchange under way
  std::uint64_t bytes_received_ = 0;
};

}  // namespace syncopate
