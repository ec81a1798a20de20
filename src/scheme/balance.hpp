#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pacer/pace_estimate.hpp"

namespace syncopate {

/// Batch sizes in proportion to the speeds of the devices, so that all end a step at the same time
/// (LB-BSP, Chen et al. 2018). The global batch stays what it is.
///
/// Pure: every worker feeds its own with what the step infos of a meeting say, the same everywhere, and so
/// all agree without a message. Speeds are estimated from every step, so that sizes follow a device
/// that becomes slower or faster.
///
/// Invariants: Σ sizes is the global batch; each is `least` at least.
class Balance {
 public:
  struct Options {
    std::vector<std::uint32_t>
        batch_sizes;          ///< to begin with, by rank; their sum is the global batch
    std::uint32_t least = 1;  ///< samples of a step
  };

  /// What a worker did in a step.
  struct Step {
    std::uint32_t samples = 0;
    Duration took{};
  };

  /// Errors: ConfigError, where the global batch is too small for `least` samples of each.
  explicit Balance(Options options);

  /// The steps of all workers, by rank.
  void observe(std::span<const Step> steps);
  /// Of the next step, by rank. Those to begin with, until every device has been heard.
  const std::vector<std::uint32_t>& sizes() const { return sizes_; }

 private:
  std::uint32_t global_batch_;
  std::uint32_t least_;
  std::vector<PaceEstimate> estimates_;
  std::vector<std::uint32_t> sizes_;
};

/// Divides `whole` in proportion to `weights` (each above 0), every part at least `least`, by largest
/// remainders; of equal ones the first gets more. `whole` is at least `least` times their number.
std::vector<std::uint32_t> divide(std::uint32_t whole, std::span<const double> weights,
                                  std::uint32_t least);

}  // namespace syncopate
