#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "collective/cost_model.hpp"
#include "collective/reducer.hpp"
#include "collective/segments.hpp"
#include "kernels/reduce.hpp"
#include "transport/tags.hpp"

namespace syncopate {

const ReducerSpec& butterfly_reducer();
const ReducerSpec& binary_blocks_reducer();

namespace {

/// The blocks of a group of this size, each of a power of two, the largest first.
std::vector<RankBlock> binary_blocks_of(std::uint32_t ranks) {
  std::vector<RankBlock> blocks;
  for (std::uint32_t first = 0; first < ranks;) {
    blocks.push_back({.first = first, .size = std::bit_floor(ranks - first)});
    first += blocks.back().size;
  }
  return blocks;
}

/// One reduction by halves under way on one rank, among the 2^k ranks of a block: recursive halving
/// and doubling (Rabenseifner 2004; Thakur et al. 2005).
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

/// Binary blocks (Rabenseifner 2004), of which this is one reduction under way on one rank, for any
/// number of ranks.
///
/// The binary digits of P cut the ranks into blocks of powers of two, the largest first: 13 ranks
/// form blocks of 8, 4 and 1. Each block reduces by halves; then position q of a block of B holds
/// the block's result for a B-th of the vector, its share. Shares go up: the smallest block sends
/// its shares to the next larger one, whose positions each add the piece that falls into their own
/// share, and so on; in the largest block they are complete. Complete shares go down: each block
/// sends them to the next smaller one. Last, each block gathers the shares of its positions.
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

/// One block holds a power of two of ranks, and reduces by halves: a butterfly.
class BinaryBlocksReducer final : public Reducer {
 public:
  explicit BinaryBlocksReducer(Group& group) : group_(group) {}

  void reduce(const Contribution& mine) override {
    if (group_.size() == 1) {
      scale(mine.values.floats(), mine.factor);
    } else {
      BlocksPass(group_, mine.values.floats(), mine.factor).run();
    }
  }

 private:
  Group& group_;
};

/// The cost of one direction: half of the vector in the first step, one share in the last.
double halving(const CostModel& model, const RankBlock& block, double bytes) {
  double total = 0;
  for (std::uint32_t distance = 1; distance < block.size; distance *= 2) {
    total += model.exchange(block, distance).seconds(bytes / (2 * distance));
  }
  return total;
}

Link up(const CostModel& model, const RankBlock& larger, const RankBlock& smaller) {
  return model.step([&](Rank rank) {
    const std::uint32_t position = rank.value - smaller.first;
    const bool inside = rank.value >= smaller.first && position < smaller.size;
    return inside ? std::optional(Rank{larger.first + position}) : std::nullopt;
  });
}

/// For P = 2^k: 2 log2 P · α + 2 (P − 1)/P · n β + (P − 1)/P · n γ, of n bytes: the bytes of the
/// ring, with latencies that grow with the logarithm of P. Else the block of B waits until the next
/// smaller one, of b, has reduced its own values and sent its shares of n / b bytes; for 2^k + 1
/// ranks about 2 n β, with 2 (k + 1) latencies.
///
/// The blocks reduce one after another, from the last to the first; then the results travel back. A
/// block sends its shares down before it gathers, through the same network card.
std::optional<double> seconds_of_blocks(const CostModel& model, double bytes) {
  const std::vector<RankBlock> all = binary_blocks_of(model.size());
  double reduced = 0;  // the time at which a block has reduced its own values and those from below
  for (std::size_t i = all.size(); i-- > 0;) {
    const double own =
        halving(model, all[i], bytes) + model.adding((1 - 1.0 / all[i].size) * bytes);
    const double from_below =
        i + 1 == all.size()
            ? 0
            : reduced + up(model, all[i], all[i + 1]).seconds(bytes / all[i + 1].size) +
                  model.adding(bytes / all[i].size);
    reduced = std::max(own, from_below);
  }
  double done = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double share = bytes / all[i].size;
    reduced += i == 0 ? 0 : up(model, all[i - 1], all[i]).seconds(share);
    const double sending_down =
        i + 1 == all.size() ? 0 : share * up(model, all[i], all[i + 1]).seconds_per_byte;
    done = std::max(done, reduced + sending_down + halving(model, all[i], bytes));
  }
  return done;
}

std::unique_ptr<Reducer> make_blocks(Group& group, const ReducerContext& /*context*/) {
  return std::make_unique<BinaryBlocksReducer>(group);
}

}  // namespace

const ReducerSpec& binary_blocks_reducer() {
  static const ReducerSpec spec{
      .name = "binary-blocks", .seconds = seconds_of_blocks, .make = make_blocks};
  return spec;
}

const ReducerSpec& butterfly_reducer() {
  static const ReducerSpec spec{
      .name = "butterfly",
      .seconds =
          [](const CostModel& model, double bytes) {
            return std::has_single_bit(model.size()) ? seconds_of_blocks(model, bytes)
                                                     : std::nullopt;
          },
      .stand_in =
          [](std::uint32_t ranks) {
            return std::has_single_bit(ranks) ? nullptr : &binary_blocks_reducer();
          },
      .ranks = "a power of two",
      .make = make_blocks};
  return spec;
}

}  // namespace syncopate
