#include "collective/two_level.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "collective/prices.hpp"
#include "collective/segments.hpp"
#include "kernels/reduce.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

/// Short enough that a host is busy with one while its first rank is with another, long enough to be worth
/// the latencies of an allreduce.
constexpr std::size_t slice_values = 8 * segment_values;

std::vector<std::span<float>> slices_of(std::span<float> values) {
  std::vector<std::span<float>> slices;
  for (std::size_t at = 0; at < values.size(); at += slice_values) {
    slices.push_back(values.subspan(at, std::min(slice_values, values.size() - at)));
  }
  return slices;
}

}  // namespace

void sum_to_first(Group& host, std::span<float> values, float factor) {
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

void take_from_first(Group& host, std::span<float> values) {
  const std::uint32_t rank = host.rank().value;
  // The lowest bit that is set tells whom a rank gave its part to; those below it, whom it had some from.
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

void two_level_allreduce(Group& group, std::span<float> values, float factor,
                         const std::function<void(Group&, std::span<float>)>& among_firsts) {
  Group host = group.of(ranks_on(group.hosts(), group.hosts()[group.rank().value]));
  std::optional<Group> firsts;
  if (host.rank() == Rank{0}) {
    firsts.emplace(group.of(first_ranks(group.hosts())));
  }
  const auto slices = slices_of(values);
  for (const auto slice : slices) {
    sum_to_first(host, slice, factor);
    if (firsts) {
      among_firsts(*firsts, slice);
      take_from_first(host, slice);
    }
  }
  for (const auto slice : slices) {
    if (!firsts) {
      take_from_first(host, slice);
    }
  }
}

}  // namespace syncopate
