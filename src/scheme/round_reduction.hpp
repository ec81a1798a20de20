#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/time.hpp"
#include "collective/allreduce.hpp"
#include "kernels/values.hpp"
#include "scheme/replica.hpp"
#include "server/server_client.hpp"

namespace syncopate {

/// The model of all before a round, and the state of the optimizer that moves it: of one length on
/// all workers. A worker that has missed no round sends `own` and `state`; one that has missed
/// rounds receives into `received` and `state`.
struct NewestModel {
  std::span<float> own = {};
  std::span<float> received = {};
  std::span<std::byte> state = {};
};

/// The values that a worker contributes to a synchronization round. The mean over all workers
/// replaces them.
struct SyncValues {
  Values model;              ///< as long as the parameters, or a part of them
  std::span<float> buffers;  ///< always by an allreduce: they are few, and no server keeps them
  /// Control variates, as long as the parameters, or empty; always by an allreduce, uncompressed.
  std::span<float> control = {};
  /// What a worker that has missed rounds gets from one that has not; empty where none misses any.
  NewestModel newest = {};
  std::size_t first = 0;  ///< the offset of `model` in the parameters
  /// The samples behind `model`, which give this worker's weight; empty: those of the step info.
  std::optional<std::uint64_t> samples = {};
};

/// A worker's part in a round in which some worker has samples.
struct WeighedValues {
  SyncValues values;
  double of_model = 0;  ///< this worker's weight in the mean of `values.model`
  double weight = 0;    ///< in all other means
  double total = 0;     ///< of all workers
  PushFacts facts{};    ///< for a server
};

/// How the vectors of a round are reduced: as a whole (`whole_reduction`), bucket by bucket while
/// the backward pass computes them (`BucketReducer`), or by a server (`reduction_by_server`).
///
/// Thread: one; `description` any.
class RoundReduction {
 public:
  virtual ~RoundReduction() = default;

  /// Called before a backward pass into `gradient`, the `model` of the next round, with this
  /// worker's weight in it. Returns the sink that takes the gradient while the pass computes it, or
  /// null.
  virtual GradientSink* begin(double /*weight*/, std::span<float> /*gradient*/) { return nullptr; }

  /// Replaces the values by their means. Returns the time for which the workers agreed on how they
  /// reduce, before anything was reduced. Errors: those of `Allreduce`.
  virtual Duration reduce(const WeighedValues& mine) = 0;
  /// Ends a round in which no worker has samples: nothing is reduced.
  virtual void skip() {}

  /// True for values that are reduced where they are. All take float32 in the host's memory.
  virtual bool takes(const Values& values) const { return values.are_host_floats(); }

  /// How, and why, as `Allreduce::description` says. Empty before the first round.
  virtual std::string description() const = 0;
};

/// The means of all vectors but the model's.
void reduce_others(Allreduce& allreduce, const WeighedValues& mine);

/// `allreduce` outlives it.
std::unique_ptr<RoundReduction> whole_reduction(Allreduce& allreduce);

/// The server sums the model's values; the others are few. Both outlive it.
std::unique_ptr<RoundReduction> reduction_by_server(ServerClient& server, Allreduce& allreduce);

}  // namespace syncopate
