#include "collective/halving.hpp"

#include <bit>

#include "transport/tags.hpp"

namespace syncopate {

void Halving::reduce_scatter(float factor) {
  for (std::uint32_t step = 0; step < steps(); ++step) {
    const std::uint32_t other = place() ^ (1U << step);
    const float once = step == 0 ? factor : 1;  // the first step touches every value
    sends_.begin(partner(step), tags::parts, held(other, step + 1), once);
    receive_and_add(group_, partner(step), held(place(), step + 1), once);
  }
}

void Halving::allgather() {
  sends_.finish();  // what was sent is written over
  Receives receives(group_);
  for (std::uint32_t step = steps(); step-- > 0;) {
    receives.begin(partner(step), tags::sums, held(place() ^ (1U << step), step + 1));
  }
  for (std::uint32_t step = steps(); step-- > 0;) {
    sends_.begin(partner(step), tags::sums, held(place(), step + 1));
    receives.finish_next();
  }
  sends_.finish();
}

std::span<float> Halving::share(std::uint32_t place) const {
  return held(place, steps());
}

std::uint32_t Halving::steps() const {
  return static_cast<std::uint32_t>(std::countr_zero(block_.size));
}

Rank Halving::partner(std::uint32_t step) const {
  return Rank{block_.first + (place() ^ (1U << step))};
}

/// What is left to a place after so many steps. Ends are rounded alike whatever the size of the block, so
/// that the shares of a large block make up those of a smaller one.
std::span<float> Halving::held(std::uint32_t place, std::uint32_t steps) const {
  std::size_t first = 0;  // in B-ths
  std::size_t count = block_.size;
  for (std::uint32_t step = 0; step < steps; ++step) {
    count /= 2;
    first += (place >> step & 1U) * count;
  }
  const std::size_t begin = values_.size() * first / block_.size;
  const std::size_t end = values_.size() * (first + count) / block_.size;
  return values_.subspan(begin, end - begin);
}

}  // namespace syncopate
