#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/mutex.hpp"
#include "collective/allreduce_plan.hpp"
#include "collective/compressed_allreduce.hpp"
#include "collective/group.hpp"
#include "collective/reducer.hpp"

namespace syncopate {

/// Reduces over all ranks of a group, by the reducers that its plan chooses (`AllreducePlan`). Each
/// is made once in a generation of the group.
///
/// If the plan needs measured links, they are measured at the first call, again for a vector that
/// is much longer than the messages they were measured with, and again after the group has lost a
/// member. All ranks then have the same links, and so choose the same reducer.
///
/// Invariant: whatever the reducer, results have the same bits on every rank.
/// Thread:    one collective at a time per group; `description` and `compression` any.
/// Errors:    PeerLost (values are then unspecified), RanksMissing, TimedOut, ViewChanged,
///            ProtocolError; ConfigError if shared memory or MPI is requested and the ranks do not
///            have it.
class Allreduce {
 public:
  struct Options {
    const ReducerSpec* requested = nullptr;  ///< null: the cheapest
    Compression compression{};               ///< of means that may be lossy
    bool compress_remote = false;  ///< compress only between hosts, each of which reduces first
    double momentum = 0;  ///< of optimizers that get compressed means: see `CompressedAllreduce`
    NativeAllreduce* of_program = nullptr;  ///< for a reducer of programs; outlives this
  };

  /// `group` outlives this. Sends nothing yet.
  Allreduce(Group& group, const Options& options);

  /// Replaces `values` by their sum over all ranks. Shape: the same length on every rank.
  void reduce(const Values& values);

  /// A vector, and the weight of this rank's values in its mean.
  struct Weighted {
    Values values;  ///< as many on every rank; `takes` is true of them
    double weight = 0;
    /// The mean is lossy where the options enable compression: what one call loses is added in the
    /// next (`CompressedAllreduce`).
    bool may_lose = false;
    std::size_t first = 0;  ///< the offset of `values` in a vector that is reduced in parts
  };

  /// Replaces each vector by its mean over all ranks: Σ weight_r · values_r / `total_weight`, where
  /// `total_weight` is Σ weight_r, which all ranks know. A rank of weight 0 contributes nothing,
  /// whatever its values are. In a group of one the values do not change. Returns the time for
  /// which links were measured, before anything was reduced.
  Duration means(std::span<const Weighted> vectors, double total_weight);
  void mean(const Weighted& vector, double total_weight) { means({&vector, 1}, total_weight); }

  /// True for values that the group reduces where they are. All take float32 in the host's memory.
  bool takes(const Values& values) const;

  /// Called after each mean in a group that may lose members, once it is complete on this rank or
  /// on another.
  void commit();

  /// True if means that may be lossy are compressed in the group as it is now.
  bool compresses() { return plan().compresses(); }

  CompressionStats compression() const;

  /// Null without compression. Called while no collective is under way.
  CompressedAllreduce* compressed() { return compressed_ ? &*compressed_ : nullptr; }
  const CompressedAllreduce* compressed() const { return compressed_ ? &*compressed_ : nullptr; }

  /// Forgets the measured links: they are measured again before the next choice.
  void forget_links() { plan_.forget_links(); }

  /// The reducer of vectors of this many float32; null in a group of one, and for none. A
  /// collective: it measures links where the choice needs them.
  const ReducerSpec* pick(std::size_t values);

  /// The cost of means of vectors of this many float32, at least one; compressed if they may be:
  /// see `AllreducePlan::cost`. The same on every rank. A collective, as `pick` is.
  AllreduceCost cost(std::size_t values);

  /// The choice for the longest vector so far, and its reason: "ring: 4 ranks, 44.7 MB, links of
  /// 35 µs and 2.4 GB/s". Empty before the first, and in a group of one.
  std::string description() const;

 private:
  AllreducePlan& plan();
  bool is_compressed(const Weighted& vector);
  void prepare(std::size_t bytes, bool compressed);
  void run(const Contribution& mine);
  const ReducerSpec* choose(std::size_t bytes);
  Reducer& made(const ReducerSpec& spec);
  Reducer& compressed_reducer();
  void share_memory();
  void measure(std::size_t bytes);
  /// True if this vector is longer than all earlier ones of this generation, and so has to be
  /// described.
  bool is_longest(std::size_t bytes) const;
  void describe(std::size_t bytes, std::string text);

  Group& group_;
  AllreducePlan::Options plan_options_;
  NativeAllreduce* of_program_;
  std::optional<CompressedAllreduce> compressed_;

  // These belong to the group's generation `planned_in_`.
  std::uint32_t planned_in_ = 0;
  AllreducePlan plan_;
  std::map<const ReducerSpec*, std::unique_ptr<Reducer>> made_;
  std::unique_ptr<Reducer> compressed_reducer_;  ///< null until it is used
  bool tried_memory_ = false;                    ///< the plan knows whether all ranks share memory

  mutable Mutex mutex_;
  std::string description_ GUARDED_BY(mutex_);
  CompressionStats compression_stats_ GUARDED_BY(mutex_);
  std::uint32_t described_in_ = 0;   ///< the generation that `description_` describes
  std::size_t described_bytes_ = 0;  ///< the longest vector of that generation
};

}  // namespace syncopate
