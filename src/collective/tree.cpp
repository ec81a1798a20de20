#include "collective/tree.hpp"

#include <bit>

#include "collective/segments.hpp"
#include "kernels/reduce.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

/// Sends `values` times `factor` to `peer`, and adds what it sends. A segment is added to as soon as it
/// has both come and gone.
void exchange(Group& group, Rank peer, std::span<float> values, float factor) {
  Sends sends(group);
  sends.begin(peer, tags::parts, values, factor);
  receive_and_add(group, peer, values, 1, {.before = [&](std::size_t i) { sends.wait(i); }});
}

/// The part of a rank beyond the power of two: `peer` adds for it.
void let_add(Group& group, Rank peer, std::span<float> values, float factor) {
  Sends sends(group);
  sends.begin(peer, tags::parts, values, factor);
  sends.finish();
  Receives receives(group);
  receives.begin(peer, tags::sums, values);
  receives.finish_next();
}

}  // namespace

void tree_allreduce(Group& group, std::span<float> values, float factor) {
  const std::uint32_t rank = group.rank().value;
  const std::uint32_t power = std::bit_floor(group.size());
  if (rank >= power) {
    let_add(group, Rank{rank - power}, values, factor);
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

}  // namespace syncopate
