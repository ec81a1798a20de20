#include "collective/binary_blocks.hpp"

#include <bit>

#include "kernels/reduce.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

/// One allreduce under way on one rank.
class BlocksPass {
 public:
  BlocksPass(Group& group, std::span<float> values, float factor)
      : group_(group), factor_(factor), blocks_(blocks_of(group.size())), sends_(group) {
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
    climb();
    descend();
    own_->allgather();
    sends_.finish();
  }

 private:
  const Halving::Block& block() const { return blocks_[mine_]; }
  std::uint32_t place() const { return group_.rank().value - block().first; }
  std::span<float> share() const { return own_->share(place()); }

  /// The place of the next smaller block whose share this one's is a part of.
  std::optional<Rank> below() const {
    if (mine_ + 1 == blocks_.size()) {
      return std::nullopt;
    }
    const Halving::Block& smaller = blocks_[mine_ + 1];
    return Rank{smaller.first + place() % smaller.size};
  }

  /// Calls `visit` with each rank of the next larger block whose share is a part of this one's, and that
  /// part.
  template <class Visit>
  void for_each_above(const Visit& visit) const {
    if (mine_ == 0) {
      return;
    }
    const Halving::Block& above = blocks_[mine_ - 1];
    for (std::uint32_t q = place(); q < above.size; q += block().size) {
      visit(Rank{above.first + q}, larger_->share(q));
    }
  }

  void climb() {
    if (const auto rank = below()) {
      receive_and_add(group_, *rank, share(), 1);
    }
    // A rank that is a block by itself has not touched its values yet.
    const float factor = block().size == 1 ? factor_ : 1;
    for_each_above(
        [&](Rank rank, std::span<float> part) { sends_.begin(rank, tags::parts, part, factor); });
  }

  void descend() {
    sends_.finish();  // what climbed is written over
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
  std::vector<Halving::Block> blocks_;
  std::size_t mine_ = 0;  ///< of `blocks_`
  std::optional<Halving> own_;
  std::optional<Halving> larger_;  ///< the shares of the next larger block
  Sends sends_;
};

}  // namespace

std::vector<Halving::Block> blocks_of(std::uint32_t ranks) {
  std::vector<Halving::Block> blocks;
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

}  // namespace syncopate
