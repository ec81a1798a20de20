#pragma once

#include <cstdint>
#include <span>

#include "collective/segments.hpp"

namespace syncopate {

/// One allreduce by halves under way on one rank: among B = 2^k neighbouring ranks of a group, the
/// block, of which this rank is one.
///
/// Reduce-scatter, by recursive halving: in step s = 0 … k − 1 place q of the block and place q xor 2^s
/// hold partial sums of the same part of the vector. Each sends the half that the other is to keep, and
/// adds what comes to the half of its own: whose bit s is 0 keeps the lower half. So the parts become
/// shorter as the distance grows; the most is said between neighbours, who are likely to be near.
/// After k steps place q holds the sum of a B-th of the vector, which is its share.
///
/// Allgather, by recursive doubling: the same steps backwards. Each sends the part that it holds the
/// sums of, and receives that of the other; parts are doubled until they are the whole vector.
///
/// A share is added in one place alone, and copied to all others, which so have the same bits.
///
/// Errors: those of `Group::await`, from both.
class Halving {
 public:
  struct Block {
    std::uint32_t first = 0;  ///< rank of place 0
    std::uint32_t size = 1;   ///< a power of two
  };

  Halving(Group& group, Block block, std::span<float> values)
      : group_(group), block_(block), values_(values), sends_(group) {}

  /// Of the values times `factor`, which differs between ranks. A block of one does nothing.
  void reduce_scatter(float factor);
  void allgather();

  /// What a place of the block holds the sums of, between the two.
  std::span<float> share(std::uint32_t place) const;

 private:
  std::uint32_t place() const { return group_.rank().value - block_.first; }
  std::uint32_t steps() const;
  Rank partner(std::uint32_t step) const;
  std::span<float> held(std::uint32_t place, std::uint32_t steps) const;

  Group& group_;
  Block block_;
  std::span<float> values_;
  Sends sends_;
};

}  // namespace syncopate
