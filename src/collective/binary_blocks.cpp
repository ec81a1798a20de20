#include "collective/binary_blocks.hpp"

#include <fmt/format.h>

#include <bit>
#include <optional>

#include "base/errors.hpp"
#include "collective/segments.hpp"
#include "kernels/reduce.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

/// One allreduce by halves under way on one rank, among the ranks of a block.
///
/// Reduce-scatter, by recursive halving: in step s = 0 … k − 1 position q of the block and position
/// q xor 2^s hold partial sums of the same part of the vector. Each sends the half that the other
/// keeps, and adds what it receives to its own half: the position whose bit s is 0 keeps the lower
/// one. Parts become shorter as the distance grows, so the longest messages go between neighbours,
/// which are likely to be near. After k steps position q holds the sum of a B-th of the vector, its
/// share.
///
/// Allgather, by recursive doubling: the same steps backwards. Each position sends the part that it
/// holds the sums of, and receives the other's; parts double until they are the whole vector.
///
/// A share is reduced in only one position, and copied to all others, so all have the same bits.
///
/// Errors: those of `Group::await`, from both.
class Halving {
 public:
  Halving(Group& group, RankBlock block, std::span<float> values)
      : group_(group), block_(block), values_(values), sends_(group) {}

  /// Reduces `factor` · values; each rank has a factor of its own. Does nothing in a block of one.
  void reduce_scatter(float factor) {
    for (std::uint32_t step = 0; step < steps(); ++step) {
      const std::uint32_t other = position() ^ (1U << step);
      const float once = step == 0 ? factor : 1;  // the first step touches every value
      sends_.begin(partner(step), tags::parts, held(other, step + 1), once);
      receive_and_add(group_, partner(step), held(position(), step + 1), once);
    }
  }

  void allgather() {
    sends_.finish();  // gathering overwrites the values that are being sent
    Receives receives(group_);
    for (std::uint32_t step = steps(); step-- > 0;) {
      receives.begin(partner(step), tags::sums, held(position() ^ (1U << step), step + 1));
    }
    for (std::uint32_t step = steps(); step-- > 0;) {
      sends_.begin(partner(step), tags::sums, held(position(), step + 1));
      receives.finish_next();
    }
    sends_.finish();
  }

  /// The part whose sums a position of the block holds between `reduce_scatter` and `allgather`.
  std::span<float> share(std::uint32_t position) const { return held(position, steps()); }

 private:
  std::uint32_t position() const { return group_.rank().value - block_.first; }
  std::uint32_t steps() const { return static_cast<std::uint32_t>(std::countr_zero(block_.size)); }

  Rank partner(std::uint32_t step) const {
    return Rank{block_.first + (position() ^ (1U << step))};
  }

  /// The part that a position holds after some steps. Its ends are rounded the same way whatever
  /// the size of the block, so the shares of a large block make up those of a smaller one.
  std::span<float> held(std::uint32_t position, std::uint32_t steps) const {
    std::size_t first = 0;  // in B-ths
    std::size_t count = block_.size;
    for (std::uint32_t step = 0; step < steps; ++step) {
      count /= 2;
      first += (position >> step & 1U) * count;
    }
    const std::size_t begin = values_.size() * first / block_.size;
    const std::size_t end = values_.size() * (first + count) / block_.size;
    return values_.subspan(begin, end - begin);
  }

  Group& group_;
  RankBlock block_;
  std::span<float> values_;
  Sends sends_;
};

/// One allreduce by binary blocks under way on one rank.
class BlocksPass {
 public:
  BlocksPass(Group& group, std::span<float> values, float factor)
      : group_(group), factor_(factor), blocks_(binary_blocks_of(group.size())), sends_(group) {
    while (group.rank().value >= blocks_[mine_].first + blocks_[mine_].size) {
      ++mine_;
    }
    own_.emplace(group, block(), values);
    if (mine_ > 0) {
      larger_.emplace(group, blocks_[mine_ - 1], values);
    }
  }

  void run() {
    own_->reduce_scatter(factor_);
    send_up();
    send_down();
    own_->allgather();
    sends_.finish();
  }

 private:
  const RankBlock& block() const { return blocks_[mine_]; }
  std::uint32_t position() const { return group_.rank().value - block().first; }
  std::span<float> share() const { return own_->share(position()); }

  /// The rank of the next smaller block whose share contains this rank's.
  std::optional<Rank> below() const {
    if (mine_ + 1 == blocks_.size()) {
      return std::nullopt;
    }
    const RankBlock& smaller = blocks_[mine_ + 1];
    return Rank{smaller.first + position() % smaller.size};
  }

  /// Calls `visit` with each rank of the next larger block whose share is a part of this rank's,
  /// and that part.
  template <class Visit>
  void for_each_above(const Visit& visit) const {
    if (mine_ == 0) {
      return;
    }
    const RankBlock& above = blocks_[mine_ - 1];
    for (std::uint32_t q = position(); q < above.size; q += block().size) {
      visit(Rank{above.first + q}, larger_->share(q));
    }
  }

  void send_up() {
    if (const auto rank = below()) {
      receive_and_add(group_, *rank, share(), 1);
    }
    // A rank that is a block by itself has not touched its values yet.
    const float factor = block().size == 1 ? factor_ : 1;
    for_each_above(
        [&](Rank rank, std::span<float> part) { sends_.begin(rank, tags::parts, part, factor); });
  }

  void send_down() {
    sends_.finish();  // the receives below overwrite the values that were sent up
    Receives receives(group_);
    for_each_above(
        [&](Rank rank, std::span<float> part) { receives.begin(rank, tags::sums, part); });
    for_each_above([&](Rank, std::span<float>) { receives.finish_next(); });
    if (const auto rank = below()) {
      sends_.begin(*rank, tags::sums, share());
    }
  }

  Group& group_;
  float factor_;
  std::vector<RankBlock> blocks_;
  std::size_t mine_ = 0;  ///< of `blocks_`
  std::optional<Halving> own_;
  std::optional<Halving> larger_;  ///< the shares of the next larger block
  Sends sends_;
};

}  // namespace

std::vector<RankBlock> binary_blocks_of(std::uint32_t ranks) {
  std::vector<RankBlock> blocks;
  for (std::uint32_t first = 0; first < ranks;) {
    blocks.push_back({.first = first, .size = std::bit_floor(ranks - first)});
    first += blocks.back().size;
  }
  return blocks;
}

void binary_blocks_allreduce(Group& group, std::span<float> values, float factor) {
  if (group.size() == 1) {
    scale(values, factor);
  } else {
    BlocksPass(group, values, factor).run();
  }
}

void butterfly_allreduce(Group& group, std::span<float> values, float factor) {
  if (!std::has_single_bit(group.size())) {
    throw InternalError(
        fmt::format("a butterfly of {} ranks, which is no power of two", group.size()));
  }
  if (group.size() == 1) {
    scale(values, factor);
    return;
  }
  Halving whole(group, {.first = 0, .size = group.size()}, values);
  whole.reduce_scatter(factor);
  whole.allgather();
}

}  // namespace syncopate
