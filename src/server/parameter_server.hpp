#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/errors.hpp"
#include "runtime/world.hpp"
#include "server/consistency.hpp"
#include "server/messages.hpp"
#include "server/shadow.hpp"
#include "server/shard_store.hpp"
#include "telemetry/histogram.hpp"

namespace syncopate {

/// One shard of a parameter server: takes requests one at a time, in the order in which they come,
/// and owns its state alone.
///
/// Thread: one.
class ParameterServer {
 public:
  struct Options {
    std::vector<NodeId> workers;                     ///< by rank
    std::vector<NodeId> servers;                     ///< by shard, this one included
    Duration wait_limit = std::chrono::seconds(60);  ///< for values that a request has announced
    Compression compression{};                       ///< as the workers'
  };

  /// What was asked for that those above have to answer.
  struct Asked {
    bool state = false;   ///< by shard 0, of another shard
    bool finish = false;  ///< likewise
  };

  /// `store` and `consistency` outlive this.
  ParameterServer(World& world, ShardStore& store, Consistency& consistency, Options options);

  /// Handles the next request, if one comes before `deadline`.
  /// Errors: ProtocolError; what the world was cancelled with.
  Asked serve(TimePoint deadline);
  /// Goes on without a worker that is lost. Nothing happens if it has left.
  void drop(Rank worker);
  /// Sends a request to another server.
  void tell(std::uint32_t shard, const Request& request);

  /// The clock that replies show from now on.
  void show_clock(Duration training, Duration paused);

  bool all_started() const { return started_.size() >= options_.workers.size(); }
  /// Every worker has left or is lost.
  bool deserted() const { return gone_.size() >= options_.workers.size(); }
  Duration busy() const { return busy_; }
  /// How many requests there were whenever one was taken, itself included.
  const Histogram& queue_length() const { return queue_length_; }

 private:
  /// What is under way to and from one worker.
  struct Line {
    std::unique_ptr<Transfer> arriving;              ///< into its desk, or the frame
    std::vector<std::byte> frame;                    ///< of a push that travels compressed
    Shadow shadow;                                   ///< what the worker has, where pulls do
    std::vector<std::unique_ptr<Transfer>> leaving;  ///< out of its desk
    bool pushed = false;                             ///< of its last request
    bool pulls = false;
    std::span<float>
        wanted{};  ///< where the worker wants the answer, in its own memory; empty: sent
  };

  void look_for_requests(TimePoint deadline);
  void lost(const PeerLost& loss);
  Asked handle(const Message& message);
  void handle_worker(Rank worker, const Request& request);
  Asked handle_server(const Request& request);
  void upload(Rank worker);
  void start(Rank worker);
  void work(Rank worker, const Request& request);
  void take_push(Rank worker, const Request& request);
  void borrow(Rank worker, const Request& request);
  void give_back(Rank worker);
  std::span<float> memory_at(Rank worker, std::uint64_t place);
  bool reaches(Rank worker);
  void leave(Rank worker);
  void expect_push(Rank worker);
  void receive_buffers(Rank worker);
  void answer(const std::vector<Rank>& workers);
  void answer(Rank worker);
  void answer_start(Rank worker);
  void say_held(Rank worker);
  void send_out(Rank worker);
  void send_values(Rank worker, std::span<const std::byte> values);
  Reply reply_to(Rank worker);
  std::optional<Rank> rank_of(NodeId node) const;

  World& world_;
  ShardStore& store_;
  Consistency& consistency_;
  Options options_;
  std::vector<Line> lines_;       ///< by rank
  std::unique_ptr<Codec> codec_;  ///< null where values travel whole
  std::deque<Message> requests_;
  std::set<Rank> starters_;  ///< that wait for a model
  std::set<Rank> started_;
  std::set<Rank> gone_;
  Duration training_{};
  Duration paused_{};
  Duration busy_{};
  Histogram queue_length_;
};

}  // namespace syncopate
