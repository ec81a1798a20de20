#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "data/split.hpp"

namespace syncopate {

/// How a training set is divided among workers.
struct PartitionOptions {
  std::uint64_t seed = 0;
  Split split{};
  /// One per worker, positive, in any unit: 1, 1, 0.5 or 64, 64, 32. With split iid parts are in
  /// this proportion; with the others they follow the classes.
  std::vector<double> shares;
  std::vector<std::uint32_t> least = {};  ///< fewest samples of each worker's part; empty: 1
};

/// Divides a training set among workers.
///
/// Invariants: every sample is in exactly one part; the sizes of parts never change; parts follow
/// from the seed and the epoch, so every worker computes its own without asking, and a resumed run
/// finds the same.
///
/// With split iid an epoch is one permutation of all samples, cut into parts of sizes proportional
/// to the shares (largest remainder, so a tiny share may get none). With the other splits every
/// worker keeps its samples for the whole job, in another order each epoch: `parts_by_class`, or
/// `dirichlet_parts`, whose proportions are drawn again, up to 100 times, until each part has its
/// least size.
class Partition {
 public:
  /// Errors: ConfigError if there is no worker, a share is not a finite number above 0, there are
  /// fewer samples than workers, or the split leaves a worker less than its least part.
  Partition(std::span<const Label> labels, PartitionOptions options);

  std::uint32_t workers() const { return static_cast<std::uint32_t>(sizes_.size()); }
  std::size_t samples() const { return samples_; }
  std::size_t size(Rank worker) const { return sizes_[worker.value]; }
  /// True if every worker keeps its samples for the whole job.
  bool keeps_parts() const { return options_.split.is_skewed(); }
  /// The samples of `worker` in `epoch`, in the order in which to train on them.
  std::vector<std::uint32_t> part(Rank worker, Epoch epoch) const;

 private:
  Parts skewed_parts(std::span<const Label> labels) const;
  void expect_least(const Parts& parts) const;
  bool complete(const Parts& parts) const;
  std::size_t least_of(std::size_t rank) const;

  PartitionOptions options_;
  std::size_t samples_;
  std::vector<std::size_t> sizes_;  ///< by rank
  Parts kept_;                      ///< by rank; empty with split iid
};

}  // namespace syncopate
