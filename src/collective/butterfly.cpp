#include "collective/butterfly.hpp"

#include <fmt/format.h>

#include <bit>

#include "base/errors.hpp"
#include "collective/halving.hpp"
#include "kernels/reduce.hpp"

namespace syncopate {

void butterfly_allreduce(Group& group, std::span<float> values, float factor) {
  if (!std::has_single_bit(group.size())) {
    throw InternalError(fmt::format("a butterfly of {} ranks, no power of two", group.size()));
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
