#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "collective/cost_model.hpp"
#include "collective/reducer.hpp"
#include "collective/segments.hpp"
#include "kernels/reduce.hpp"
#include "transport/tags.hpp"

namespace syncopate {

const ReducerSpec& two_level_reducer();

namespace {

/// Short enough that a host reduces one slice while its leader reduces another, long enough to be
/// worth the latencies of a sum among leaders.
constexpr std::size_t slice_values = 8 * segment_values;

/// The lower level: leaves the sum of `factor` · `values` on rank 0 of `host`, and unspecified
/// values on the others. By a binomial tree: in step s rank r of the host, if s is the lowest bit
/// set in it, sends its partial sums to r − 2^s.
void reduce_to_leader(Group& host, std::span<float> values, float factor) {
  const std::uint32_t rank = host.rank().value;
  float once = factor;
  std::uint32_t distance = 1;
  for (; distance < host.size() && (rank & distance) == 0; distance *= 2) {
    if (rank + distance < host.size()) {
      receive_and_add(host, Rank{rank + distance}, values, std::exchange(once, 1.0F));
    }
  }
  if (rank == 0) {
    scale(values, once);
    return;
  }
  Sends sends(host);
  sends.begin(Rank{rank - distance}, tags::parts, values, once);
  sends.finish();
}

/// Gives all ranks of the host the values of rank 0, by the same tree.
void broadcast_from_leader(Group& host, std::span<float> values) {
  const std::uint32_t rank = host.rank().value;
  // The tree of the reduction: the parent of a rank differs from it in the rank's lowest set bit,
  // its children in the bits below.
  const std::uint32_t bit = rank == 0 ? std::bit_ceil(host.size()) : rank & (~rank + 1);
  if (rank > 0) {
    Receives receives(host);
    receives.begin(Rank{rank - bit}, tags::sums, values);
    receives.finish_next();
  }
  Sends sends(host);
  for (std::uint32_t distance = bit / 2; distance > 0; distance /= 2) {
    if (rank + distance < host.size()) {
      sends.begin(Rank{rank + distance}, tags::sums, values);
    }
  }
  sends.finish();
}

/// Two levels, for groups on several hosts, some of which have several ranks.
///
/// Each host reduces to its lowest rank, the leader. The leaders reduce among themselves, and each
/// broadcasts the result on its host. So the bytes cross between hosts once per host, whatever its
/// number of ranks. A long vector passes all three stages in slices: while the leaders reduce one,
/// their hosts reduce the next.
class TwoLevelReducer final : public Reducer {
 public:
  TwoLevelReducer(Group& group, AmongLeaders among_leaders)
      : group_(group), among_leaders_(std::move(among_leaders)) {}

  void reduce(const Contribution& mine) override {
    Group host = group_.subgroup(ranks_on(group_.hosts(), group_.hosts()[group_.rank().value]));
    std::optional<Group> leaders;
    if (host.rank() == Rank{0}) {
      leaders.emplace(group_.subgroup(host_leaders(group_.hosts())));
    }
    const std::span<float> values = mine.values.floats();
    for (std::size_t at = 0; at < values.size(); at += slice_values) {
      const std::span<float> slice = slice_of(values, at);
      reduce_to_leader(host, slice, mine.factor);
      if (leaders) {
        among_leaders_(*leaders, {.values = slice, .first = mine.first + at});
        broadcast_from_leader(host, slice);
      }
    }
    for (std::size_t at = 0; !leaders && at < values.size(); at += slice_values) {
      broadcast_from_leader(host, slice_of(values, at));
    }
  }

 private:
  static std::span<float> slice_of(std::span<float> values, std::size_t at) {
    return values.subspan(at, std::min(slice_values, values.size() - at));
  }

  Group& group_;
  AmongLeaders among_leaders_;
};

/// On the host with the most ranks, m: ⌈log2 m⌉ (2 (α + n β) + n γ), of n bytes; and the cheapest
/// among the leaders.
std::optional<double> seconds_of_two_level(const CostModel& model, double bytes) {
  if (!has_two_levels(model.hosts())) {
    return std::nullopt;
  }
  std::map<std::uint32_t, std::uint32_t> ranks;  // by host
  std::uint32_t most = 0;
  for (const std::uint32_t host : model.hosts()) {
    most = std::max(most, ++ranks[host]);
  }
  const auto steps = static_cast<double>(std::bit_width(most - 1));
  const CostModel leaders = model.among_leaders();
  return steps * (2 * model.links().within.seconds(bytes) + model.adding(bytes)) +
         leaders.seconds(leaders.cheapest(bytes), bytes).value();
}

}  // namespace

const ReducerSpec& two_level_reducer() {
  static const ReducerSpec spec{
      .name = "two-level",
      .seconds = seconds_of_two_level,
      .has_two_levels = true,
      .make = [](Group& group, const ReducerContext& context) -> std::unique_ptr<Reducer> {
        return std::make_unique<TwoLevelReducer>(group, context.among_leaders);
      }};
  return spec;
}

}  // namespace syncopate
