#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "server/shard_store.hpp"

namespace syncopate {

/// Decides when pushed values enter a shard's model, and when workers receive answers. There is one
/// class for each kind of scheme; it drives the store, decides by pure rules, and knows no socket.
///
/// A worker waits for the answer to a request before it sends the next one. Its slot holds the
/// values that it has pushed.
class Consistency {
 public:
  virtual ~Consistency() = default;

  /// A worker has sent a request: with `push` its slot holds pushed values, with `pull` it wants
  /// parameters. Returns the workers to answer now, this one or others; the slot of each one that
  /// pulls holds its parameters.
  virtual std::vector<Rank> on_request(Rank worker, bool push, bool pull) = 0;
  /// A worker has left or died. Returns the workers to answer now.
  virtual std::vector<Rank> on_gone(Rank worker) = 0;
  /// A worker takes no step for a while, and does not hold others up. It has no request under way.
  /// Returns the workers to answer now.
  virtual std::vector<Rank> on_rest(Rank /*worker*/) { return {}; }
  /// Called before the first request of a worker that has rested.
  virtual void on_return(Rank /*worker*/) {}
  /// Shard 0 has decided that the gradients of `workers` make up `step`. Returns the workers to
  /// answer now.
  virtual std::vector<Rank> on_admitted(std::uint64_t step, std::span<const Rank> workers);
  /// The workers that an unanswered worker waits for.
  virtual std::vector<Rank> waited_for(Rank /*worker*/) const { return {}; }
  /// Called when the job resumes from the state that was loaded into the store.
  virtual void on_resumed() {}
};

struct ConsistencyOptions {
  enum class Kind {
    at_once,  ///< applied and answered as they arrive: asgd, dc-asgd, downpour
    table,    ///< answered as they arrive, applied as means over workers: asgd --gradient-table
    bounded,  ///< applied as they arrive, answered within a bound on staleness: ssp
    backup,   ///< a step closes with its first n gradients: backup
    elastic,  ///< replicas and the model move towards each other: easgd
    reduce,   ///< every worker receives the sum of all pushes: ssgd
  };

  Kind kind = Kind::at_once;
  std::uint32_t slack = 0;           ///< of bounded: clocks
  std::uint32_t backup_workers = 0;  ///< of backup
  float moving_rate = 0;             ///< of elastic: α
  bool first_shard = true;           ///< this one decides for all shards
  /// Sends the other shards the workers whose gradients make up a step.
  std::function<void(std::uint64_t step, const std::vector<Rank>& workers)> notify_shards = {};
};

/// `store` outlives the result.
std::unique_ptr<Consistency> make_consistency(ShardStore& store, const ConsistencyOptions& options);

}  // namespace syncopate
