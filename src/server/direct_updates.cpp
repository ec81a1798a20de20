#include "server/direct_updates.hpp"

namespace syncopate {

std::vector<Rank> DirectUpdates::asked(Rank worker, bool push, bool pull) {
  if (push) {
    store_.apply(worker, pull);
  } else if (pull) {
    store_.read(worker);
  }
  return {worker};
}

std::vector<Rank> ElasticUpdates::asked(Rank worker, bool push, bool pull) {
  if (push) {
    store_.exchange(worker, moving_rate_);
  } else if (pull) {
    store_.read(worker);
  }
  return {worker};
}

}  // namespace syncopate
