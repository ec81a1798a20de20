#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "collective/algorithm.hpp"
#include "collective/compressed_sums.hpp"
#include "collective/group.hpp"
#include "collective/prices.hpp"
#include "collective/shared_allreduce.hpp"

namespace syncopate {

/// Sums over all ranks of a group, by the algorithm that the user names or the one that is cheapest.
///
/// On one host whose ranks share memory it sums there, and says nothing of links. Else, where the choice is its own, it
/// measures the links when it is first asked for a sum, again when one is asked for that is much longer than what it
/// measured with, and again when the group has lost a member. All ranks then have the same figures, and so come to the
/// same choice without a message.
///
/// By MPI it sums where it is told to, and the transport and all its ranks can: else ConfigError.
///
/// A group may shrink to a size that is none for a butterfly: binary blocks then take its place.
///
/// Invariant: whatever the algorithm, sums have the same bits on every rank.
/// Thread:    one collective at a time per group; `description` and `compression` any.
/// Errors:    PeerLost (values are then unspecified), RanksMissing, TimedOut, ViewChanged, ProtocolError.
class Allreduce {
 public:
  struct Options {
    Algorithm algorithm = Algorithm::automatic;
    Compression compression{};     ///< of `compressed_mean`, whose sums then go a way of their own
    bool compress_remote = false;  ///< only between hosts: each adds up by itself first
    double momentum = 0;  ///< of optimizers that get compressed means: see `CompressedSums`
  };

  /// `group` outlives this. Says nothing to others yet.
  Allreduce(Group& group, const Options& options);

  /// Replaces `values` by their sum over all ranks. Shape: as long on every rank.
  void sum(std::span<float> values);

  /// Replaces `values` by the mean over all ranks, weighted: Σ weight_r · values_r / `total_weight`,
  /// where `total_weight` is Σ weight_r, as all ranks know it. A rank of weight 0 adds nothing,
  /// whatever its values are. The values of a group of one are their mean.
  void weighted_mean(std::span<float> values, double weight, double total_weight);

  /// The same of values that may lose something on their way, if the options say so, and have what they lost added
  /// the next time: `CompressedSums`. They begin at `first` of a whole whose mean is taken in parts.
  void compressed_mean(std::span<float> values, std::size_t first, double weight,
                       double total_weight);

  /// The mean that was last taken has ended well, here or elsewhere. To be called after each one, in a group that may
  /// lose members.
  void commit();

  /// Makes ready for compressed means of so many values: measures what `cost` and `description` tell. A
  /// collective. Where nothing is compressed it is `pick`.
  void prepare(std::size_t values);

  /// Whether means are compressed in this group, as it is now.
  bool compresses() const;

  CompressionStats compression() const;

  /// Null where nothing is compressed. No collective is under way.
  CompressedSums* compressed() { return compressed_ ? &*compressed_ : nullptr; }
  const CompressedSums* compressed() const { return compressed_ ? &*compressed_ : nullptr; }

  /// Links are measured again when a choice is next made.
  void forget_links();

  /// What a sum of so many values is made by. It is a collective, too: what has to be measured for it
  /// is, so that the sum itself takes no longer than later ones.
  Algorithm pick(std::size_t values);

  /// What compressed means cost, or sums by what is picked for one of so many values, at least one: by the links as
  /// measured. Where the algorithm is the user's choice, who may want runs that repeat to the last bit, by usual ones; in
  /// shared memory, which has no links, and by MPI, which does not tell them, by usual figures, too. The same on every
  /// rank. A collective, as `pick` is.
  SumCost cost(std::size_t values);

  /// What it picked for the longest sum so far, and what from: "ring: 4 ranks, 44.7 MB, links of 35 µs
  /// and 2.4 GB/s". Empty before the first, and in a group of one.
  std::string description() const;

 private:
  void run(std::span<float> values, float factor);
  bool shares_memory();
  void measure(std::size_t bytes);
  Algorithm cheapest(std::size_t bytes);
  Algorithm cheapest_among_firsts(std::size_t bytes);
  SumCost cost_compressed(std::size_t bytes);
  void describe(Algorithm algorithm, std::size_t bytes);
  void describe(std::string_view by, std::size_t bytes, const std::string& why);

  Group& group_;
  Options options_;
  std::unique_ptr<SharedAllreduce> shared_;     ///< null where not all ranks share memory
  std::optional<std::uint32_t> sharing_since_;  ///< the generation that it was tried in
  std::optional<Prices> prices_;                ///< of the group as it was when it was measured
  Links links_;                                 ///< likewise
  std::map<std::size_t, Algorithm> picked_;     ///< likewise, by length: to price takes time
  std::map<std::size_t, Algorithm> picked_among_firsts_;  ///< likewise
  std::uint32_t measured_in_ = 0;                         ///< the generation
  std::size_t measured_with_ = 0;                         ///< bytes of the long messages

  std::optional<CompressedSums> compressed_;

  mutable std::mutex mutex_;  // guards what it says of itself
  std::string description_;
  CompressionStats compression_stats_;
  std::uint32_t described_in_ = 0;  ///< the generation
  std::size_t longest_ = 0;         ///< bytes, in it
};

}  // namespace syncopate
