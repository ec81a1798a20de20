#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace syncopate {

/// The set of a replica's tensors that have a gradient, in the order of the tensors. An optimizer
/// leaves the others as they are: not even a weight decay or a momentum moves them.
///
/// A set of no tensors means that every tensor has a gradient in every step.
class GradientSet {
 public:
  GradientSet() = default;
  /// All tensors, or none.
  GradientSet(std::size_t tensors, bool all) : has_(tensors, all) {}
  /// `flags` has one value per tensor: 0 if the tensor has no gradient.
  explicit GradientSet(std::span<const std::uint8_t> flags);
  /// Restores the set of `tensors` tensors that `packed()` has packed.
  GradientSet(std::size_t tensors, std::span<const std::byte> packed);

  std::size_t tensors() const { return has_.size(); }
  /// Adds the tensors of another set of the same replica.
  void add(const GradientSet& other);

  /// 1 for each tensor with a gradient, else 0.
  std::vector<std::uint8_t> flags() const;
  /// One bit per tensor, from the lowest bit of the first byte on.
  std::vector<std::byte> packed() const;
  static std::size_t packed_bytes(std::size_t tensors) { return (tensors + 7) / 8; }

  friend bool operator==(const GradientSet&, const GradientSet&) = default;

 private:
  std::vector<bool> has_;
};

}  // namespace syncopate
