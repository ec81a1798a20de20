#include <bit>
#include <utility>

#include "collective/cost_model.hpp"
#include "collective/reducer.hpp"
#include "collective/segments.hpp"
#include "kernels/reduce.hpp"
#include "transport/tags.hpp"

namespace syncopate {

const ReducerSpec& tree_reducer();

namespace {

/// A binomial tree for each rank, all of them at once (recursive doubling; Thakur et al. 2005).
///
/// A tree of one root takes ⌈log2 P⌉ steps to reduce, and as many to broadcast the result. With
/// every rank a root there is nothing to broadcast, and the P trees share their messages: in step s
/// ranks r and r xor 2^s exchange their partial sums and both add them, so every rank holds the sum
/// of 2^(s+1). Where P is no power of two, the r ranks beyond the greatest power below it first
/// send their values to the first r ranks, and receive the results from them in the end. Both sides
/// of an exchange add the same two numbers, and a + b has the bits of b + a (except the payload of
/// NaN).
class TreeReducer final : public Reducer {
 public:
  explicit TreeReducer(Group& group) : group_(group) {}

  void reduce(const Contribution& mine) override {
    const std::span<float> values = mine.values.floats();
    const std::uint32_t rank = group_.rank().value;
    const std::uint32_t power = std::bit_floor(group_.size());
    if (rank >= power) {
      reduce_by_peer(Rank{rank - power}, values, mine.factor);
      return;
    }
    const Rank beyond{rank + power};
    const bool reduces_for_it = beyond.value < group_.size();
    if (reduces_for_it) {
      receive_and_add(group_, beyond, values, mine.factor);
    } else if (power == 1) {
      scale(values, mine.factor);
    }
    float once = reduces_for_it ? 1 : mine.factor;
    for (std::uint32_t distance = 1; distance < power; distance *= 2) {
      exchange_with(Rank{rank ^ distance}, values, std::exchange(once, 1.0F));
    }
    if (reduces_for_it) {
      Sends sends(group_);
      sends.begin(beyond, tags::sums, values);
      sends.finish();
    }
  }

 private:
  /// Sends `values` times `factor` to `peer`, and adds the values that `peer` sends. A segment is
  /// changed as soon as its send and its receive have ended.
  void exchange_with(Rank peer, std::span<float> values, float factor) {
    Sends sends(group_);
    sends.begin(peer, tags::parts, values, factor);
    receive_and_add(group_, peer, values, 1, {.before = [&](std::size_t i) { sends.wait(i); }});
  }

  /// A rank beyond the power of two lets `peer` reduce for it.
  void reduce_by_peer(Rank peer, std::span<float> values, float factor) {
    Sends sends(group_);
    sends.begin(peer, tags::parts, values, factor);
    sends.finish();
    Receives receives(group_);
    receives.begin(peer, tags::sums, values);
    receives.finish_next();
  }

  Group& group_;
};

/// log2 P · (α + n β + n γ), of n bytes; 2 (α + n β) + n γ more where P is no power of two. No
/// reducer has fewer latencies, so this is the one for short vectors; for long ones it moves log2 P
/// times the bytes that a butterfly moves one way.
std::optional<double> seconds_of_tree(const CostModel& model, double bytes) {
  const RankBlock power{.first = 0, .size = std::bit_floor(model.size())};
  double total = 0;
  for (std::uint32_t distance = 1; distance < power.size; distance *= 2) {
    total += model.exchange(power, distance).seconds(bytes) + model.adding(bytes);
  }
  if (power.size < model.size()) {
    const Link link = model.step([&](Rank rank) {
      return rank.value >= power.size ? std::optional(Rank{rank.value - power.size}) : std::nullopt;
    });
    total += 2 * link.seconds(bytes) + model.adding(bytes);
  }
  return total;
}

}  // namespace

const ReducerSpec& tree_reducer() {
  static const ReducerSpec spec{
      .name = "tree",
      .seconds = seconds_of_tree,
      .make = [](Group& group, const ReducerContext&) -> std::unique_ptr<Reducer> {
        return std::make_unique<TreeReducer>(group);
      }};
  return spec;
}

}  // namespace syncopate
