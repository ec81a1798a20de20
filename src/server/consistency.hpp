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

/// When what workers push enters a shard's model, and when they are answered. One for each kind of
/// scheme; drives the store, decides by pure rules, and knows no socket.
///
/// A worker asks once and waits for its answer before it asks again. What it pushed lies in its slot.
class Consistency {
 public:
  virtual ~Consistency() = default;

  /// A worker has asked; with `push` its slot holds what it pushed, with `pull` it wants values.
  /// Returns the workers to answer now, it or others; the slot of each that pulls holds its values.
  virtual std::vector<Rank> on_request(Rank worker, bool push, bool pull) = 0;
  /// A worker has left or died. Returns the workers that need wait no longer.
  virtual std::vector<Rank> on_gone(Rank worker) = 0;
  /// Whose gradients make up `step`: told by shard 0 to the others.
  virtual std::vector<Rank> on_admitted(std::uint64_t step, std::span<const Rank> workers);
  /// Whom a worker that was not answered waits for.
  virtual std::vector<Rank> waited_for(Rank /*worker*/) const { return {}; }
  /// A job goes on from the state that was loaded into the store.
  virtual void on_resumed() {}
};

struct ConsistencyOptions {
  enum class Kind {
    at_once,  ///< applied and answered as they come: asgd, dc-asgd, downpour
    bounded,  ///< applied as they come, answered within a bound on staleness: ssp
    backup,   ///< a step closes with the first so many gradients of it: backup
    elastic,  ///< parameters instead of gradients, drawn towards each other: easgd
    reduce,   ///< the sum of all that was pushed, to everyone: ssgd
  };

  Kind kind = Kind::at_once;
  std::uint32_t slack = 0;           ///< of bounded: clocks
  std::uint32_t backup_workers = 0;  ///< of backup
  float moving_rate = 0;             ///< of elastic: α
  bool first_shard = true;           ///< decides for all shards where one has to
  /// Tells the other shards whose gradients make up a step.
  std::function<void(std::uint64_t step, const std::vector<Rank>& workers)> notify_shards = {};
};

/// `store` must outlive what is made.
std::unique_ptr<Consistency> make_consistency(ShardStore& store, const ConsistencyOptions& options);

}  // namespace syncopate
