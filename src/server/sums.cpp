#include "server/sums.hpp"

#include <utility>

namespace syncopate {

std::vector<Rank> Sums::asked(Rank worker, bool push, bool /*pull*/) {
  if (!push) {
    store_.read(worker);
    return {worker};
  }
  here_.insert(worker);
  if (here_.size() < store_.workers()) {
    return {};
  }
  store_.sum();
  const std::set<Rank> all = std::exchange(here_, {});
  return {all.begin(), all.end()};
}

std::vector<Rank> Sums::waited_for(Rank /*worker*/) const {
  std::vector<Rank> missing;
  for (std::uint32_t rank = 0; rank < store_.workers(); ++rank) {
    if (!here_.contains(Rank{rank})) {
      missing.push_back(Rank{rank});
    }
  }
  return missing;
}

}  // namespace syncopate
