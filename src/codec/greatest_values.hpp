#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace syncopate {

/// Finds the values of greatest magnitude. A guess from a sample leaves few candidates, of which
/// the greatest are then selected.
///
/// Thread: one at a time.
class GreatestValues {
 public:
  /// The indices of the `wanted` values of greatest magnitude, ascending; the first ones among
  /// equals. NaN counts as the greatest. Valid until the next call. `wanted`: at most the number of
  /// values.
  std::span<const std::uint32_t> find(std::span<const float> values, std::size_t wanted);

 private:
  std::size_t collect(std::span<const float> values, std::uint32_t least);
  std::uint32_t usual_least(std::span<const float> values, std::size_t wanted);

  std::vector<std::uint32_t> indices_;     ///< of the values that may be among the greatest
  std::vector<std::uint32_t> magnitudes_;  ///< to be partially sorted
};

}  // namespace syncopate
