#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace syncopate {

/// Σ n_k g_k over mini-batches of n_k samples with mean gradients g_k.
class GradientAccumulator {
 public:
  /// All gradients are equally long.
  void add(std::span<const float> mean, std::uint32_t samples);
  /// into = sum / `divisor`, which is above 0; zeros where nothing was added.
  void divided_into(std::span<float> into, double divisor) const;
  void clear();

  std::uint64_t samples() const { return samples_; }  ///< Σ n_k

 private:
  std::vector<float> sum_;  ///< empty before the first `add`
  std::uint64_t samples_ = 0;
};

}  // namespace syncopate
