#include "collective/native_reducer.hpp"

#include "kernels/reduce.hpp"

namespace syncopate {

void NativeReducer::reduce(const Contribution& mine) {
  const std::span<float> values = mine.values.floats();
  scale(values, mine.factor);
  group_.await([&](TimePoint until) { native_.allreduce(values, until); },
               {.operation = "allreduce", .missing = [&] { return others(); }});
}

std::vector<Rank> NativeReducer::others() const {
  std::vector<Rank> others;
  for (std::uint32_t rank = 0; rank < group_.size(); ++rank) {
    if (Rank{rank} != group_.rank()) {
      others.push_back(group_.rank_in_job(Rank{rank}));
    }
  }
  return others;
}

}  // namespace syncopate
