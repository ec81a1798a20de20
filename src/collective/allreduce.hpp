#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/mutex.hpp"
#include "collective/allreduce_plan.hpp"
#include "collective/compressed_allreduce.hpp"
#include "collective/group.hpp"
#include "collective/shared_allreduce.hpp"

namespace syncopate {

/// Reduces over all ranks of a group, by the algorithm that its plan chooses (`AllreducePlan`).
///
/// If the plan needs measured links, they are measured at the first call, again for a vector that
/// is much longer than the messages they were measured with, and again after the group has lost a
/// member. All ranks then have the same links, and so choose the same algorithm.
///
/// Invariant: whatever the algorithm, results have the same bits on every rank.
/// Thread:    one collective at a time per group; `description` and `compression` any.
/// Errors:    PeerLost (values are then unspecified), RanksMissing, TimedOut, ViewChanged,
///            ProtocolError; ConfigError if shared memory or MPI is requested and the ranks do not
///            have it.
class Allreduce {
 public:
  struct Options {
    Algorithm algorithm = Algorithm::automatic;
    Compression compression{};     ///< of `compressed_mean`
    bool compress_remote = false;  ///< compress only between hosts, each of which reduces first
    double momentum = 0;  ///< of optimizers that get compressed means: see `CompressedAllreduce`
  };

  /// `group` outlives this. Sends nothing yet.
  Allreduce(Group& group, const Options& options);

  /// Replaces `values` by their sum over all ranks. Shape: the same length on every rank.
  void reduce(std::span<float> values);

  /// Replaces `values` by the mean over all ranks, weighted: Σ weight_r · values_r /
  /// `total_weight`, where `total_weight` is Σ weight_r, which all ranks know. A rank of weight 0
  /// contributes nothing, whatever its values are. In a group of one the values do not change.
  void weighted_mean(std::span<float> values, double weight, double total_weight);

  /// The same mean, lossy where the options enable compression: what one call loses is added in the
  /// next (`CompressedAllreduce`). The values begin at offset `first` of a vector that is reduced
  /// in parts.
  void compressed_mean(std::span<float> values, std::size_t first, double weight,
                       double total_weight);

  /// Called after each mean in a group that may lose members, once it is complete on this rank or
  /// on another.
  void commit();

  /// Prepares compressed means of vectors of this length: measures the links that `cost` and
  /// `description` report. A collective. Without compression it does the same as `pick`.
  void prepare(std::size_t values);

  /// True if `compressed_mean` compresses in the group as it is now.
  bool compresses() { return plan().compresses(); }

  CompressionStats compression() const;

  /// Null without compression. Called while no collective is under way.
  CompressedAllreduce* compressed() { return compressed_ ? &*compressed_ : nullptr; }
  const CompressedAllreduce* compressed() const { return compressed_ ? &*compressed_ : nullptr; }

  /// Forgets the measured links: they are measured again before the next choice.
  void forget_links() { plan_.forget_links(); }

  /// The algorithm for vectors of this length. A collective: it measures links where necessary, so
  /// that the first reduction takes no longer than later ones.
  Algorithm pick(std::size_t values);

  /// The cost of reducing vectors of this length, at least one value: see `AllreducePlan::cost`.
  /// The same on every rank. A collective, as `pick` is.
  AllreduceCost cost(std::size_t values);

  /// The choice for the longest vector so far, and its reason: "ring: 4 ranks, 44.7 MB, links of
  /// 35 µs and 2.4 GB/s". Empty before the first, and in a group of one.
  std::string description() const;

 private:
  AllreducePlan& plan();
  void run(std::span<float> values, float factor);
  void share_memory();
  void measure(std::size_t bytes);
  /// True if this vector is longer than all earlier ones of this generation, and so has to be
  /// described.
  bool is_longest(std::size_t bytes) const;
  void describe(std::size_t bytes, std::string text);

  Group& group_;
  AllreducePlan::Options plan_options_;
  AllreducePlan plan_;  ///< of the group's generation `planned_in_`
  std::uint32_t planned_in_ = 0;
  std::unique_ptr<SharedAllreduce> shared_;     ///< null where not all ranks share memory
  std::optional<std::uint32_t> sharing_since_;  ///< the generation in which it was last made
  std::optional<CompressedAllreduce> compressed_;

  mutable Mutex mutex_;
  std::string description_ GUARDED_BY(mutex_);
  CompressionStats compression_stats_ GUARDED_BY(mutex_);
  std::uint32_t described_in_ = 0;   ///< the generation that `description_` describes
  std::size_t described_bytes_ = 0;  ///< the longest vector of that generation
};

}  // namespace syncopate
