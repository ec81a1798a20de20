#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pacer/pace_estimate.hpp"

namespace syncopate {

/// Batch sizes in proportion to the speeds of the devices, so that all workers end a step at the
/// same time (LB-BSP, Chen et al. 2018). The global batch does not change.
///
/// Pure: every worker feeds its own copy with the step infos of a round, which are the same on all
/// workers, so all compute the same sizes without a message. Speeds are estimated from every step,
/// so sizes follow a device that becomes slower or faster.
///
/// Invariants: Σ sizes is the global batch; each size is at least `least`, at most its `most`.
class Balance {
 public:
  struct Options {
    /// The initial batch sizes, by rank. Their sum is the global batch.
    std::vector<std::uint32_t> batch_sizes;
    std::uint32_t least = 1;            ///< the fewest samples of a step
    std::vector<std::uint32_t> most{};  ///< samples of a step, by rank; empty: any number
  };

  /// The step of one worker.
  struct Step {
    std::uint32_t samples = 0;
    Duration took{};
  };

  /// Errors: ConfigError if the global batch is too small for `least` samples per worker.
  explicit Balance(Options options);

  /// Takes the steps of all workers, by rank.
  void observe(std::span<const Step> steps);
  /// The sizes of the next step, by rank. They stay at their initial values until the speed of
  /// every device is known.
  const std::vector<std::uint32_t>& sizes() const { return sizes_; }

 private:
  std::uint32_t global_batch_;
  std::uint32_t least_;
  std::vector<std::uint32_t> most_;
  std::vector<PaceEstimate> estimates_;
  std::vector<std::uint32_t> sizes_;
};

/// Divides `whole` in proportion to `weights` (all positive) by largest remainders; among equal
/// remainders the first part gets more. Every part is at least `least`, and at most its `most`,
/// unless that is empty; `whole` is at least `least` times the number of parts, at most Σ `most`.
std::vector<std::uint32_t> divide(std::uint32_t whole, std::span<const double> weights,
                                  std::uint32_t least, std::span<const std::uint32_t> most = {});

}  // namespace syncopate
