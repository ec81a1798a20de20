#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"

namespace syncopate {

/// How a training set is divided among workers.
struct PartitionOptions {
  std::uint64_t seed = 0;
  bool split_by_class = false;  ///< few classes per worker (non-i.i.d.) instead of a shuffle
  std::vector<double> shares;   ///< one per worker, positive, in any unit: 1, 1, 0.5 or 64, 64, 32
};

/// Divides a training set among workers, anew each epoch.
///
/// Invariants: every sample is in exactly one part of an epoch; the sizes of parts depend on the
/// shares alone (largest remainder, so a tiny share may get none) and never change; an epoch's parts
/// follow from the seed and the epoch, so every worker computes its own without asking, and a resumed
/// run finds the same.
///
/// Shuffled, an epoch is one permutation of all samples, cut into parts. Split by class, samples are
/// ordered by label and cut into parts once, so that a worker sees few classes, and each part is
/// shuffled anew every epoch.
class Partition {
 public:
  /// Errors: ConfigError, for no worker, a share that is not a finite number above 0, or fewer
  /// samples than workers.
  Partition(std::span<const std::uint8_t> labels, PartitionOptions options);

  std::uint32_t workers() const { return static_cast<std::uint32_t>(bounds_.size() - 1); }
  std::size_t size(Rank worker) const;
  /// The samples of `worker` in `epoch`, in the order in which to train on them.
  std::vector<std::uint32_t> part(Rank worker, Epoch epoch) const;

 private:
  PartitionOptions options_;
  std::vector<std::uint32_t> ordered_;  ///< by label when split by class, else 0, 1, 2 …
  std::vector<std::size_t> bounds_;     ///< workers + 1 ascending offsets into an epoch's order
};

}  // namespace syncopate
