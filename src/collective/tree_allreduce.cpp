#include "collective/tree_allreduce.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include "collective/cost_model.hpp"
#include "collective/segments.hpp"
#include "kernels/reduce.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

/// Sends `values` times `factor` to `peer`, and adds the values that `peer` sends. A segment is
/// changed as soon as its send and its receive have ended.
void exchange(Group& group, Rank peer, std::span<float> values, float factor) {
  Sends sends(group);
  sends.begin(peer, tags::parts, values, factor);
  receive_and_add(group, peer, values, 1, {.before = [&](std::size_t i) { sends.wait(i); }});
}

/// A rank beyond the power of two lets `peer` reduce for it.
void reduce_by_peer(Group& group, Rank peer, std::span<float> values, float factor) {
  Sends sends(group);
  sends.begin(peer, tags::parts, values, factor);
  sends.finish();
  Receives receives(group);
  receives.begin(peer, tags::sums, values);
  receives.finish_next();
}

/// Short enough that a host reduces one slice while its leader reduces another, long enough to be
/// worth the latencies of an allreduce.
constexpr std::size_t slice_values = 8 * segment_values;

std::vector<std::span<float>> slices_of(std::span<float> values) {
  std::vector<std::span<float>> slices;
  for (std::size_t at = 0; at < values.size(); at += slice_values) {
    slices.push_back(values.subspan(at, std::min(slice_values, values.size() - at)));
  }
  return slices;
}

}  // namespace

void tree_allreduce(Group& group, std::span<float> values, float factor) {
  const std::uint32_t rank = group.rank().value;
  const std::uint32_t power = std::bit_floor(group.size());
  if (rank >= power) {
    reduce_by_peer(group, Rank{rank - power}, values, factor);
    return;
  }
  const Rank beyond{rank + power};
  if (beyond.value < group.size()) {
    receive_and_add(group, beyond, values, factor);
  } else if (power == 1) {
    scale(values, factor);
  }
  float once = beyond.value < group.size() ? 1 : factor;
  for (std::uint32_t distance = 1; distance < power; distance *= 2) {
    exchange(group, Rank{rank ^ distance}, values, std::exchange(once, 1.0F));
  }
  if (beyond.value < group.size()) {
    Sends sends(group);
    sends.begin(beyond, tags::sums, values);
    sends.finish();
  }
}

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

void two_level_allreduce(Group& group, std::span<float> values, float factor,
                         const std::function<void(Group&, std::span<float>)>& among_leaders) {
  Group host = group.subgroup(ranks_on(group.hosts(), group.hosts()[group.rank().value]));
  std::optional<Group> leaders;
  if (host.rank() == Rank{0}) {
    leaders.emplace(group.subgroup(host_leaders(group.hosts())));
  }
  const auto slices = slices_of(values);
  for (const auto slice : slices) {
    reduce_to_leader(host, slice, factor);
    if (leaders) {
      among_leaders(*leaders, slice);
      broadcast_from_leader(host, slice);
    }
  }
  for (const auto slice : slices) {
    if (!leaders) {
      broadcast_from_leader(host, slice);
    }
  }
}

}  // namespace syncopate
