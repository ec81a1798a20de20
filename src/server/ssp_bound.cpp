#include "server/ssp_bound.hpp"

namespace syncopate {

SspBound::SspBound(ShardStore& store, std::uint32_t slack)
    : store_(store), table_({.workers = store.workers(), .slack = slack}) {}

std::vector<Rank> SspBound::asked(Rank worker, bool push, bool /*pull*/) {
  if (push) {
    store_.apply(worker, false);
    table_.finished(worker);
  }
  waiting_.insert(worker);
  return release();
}

std::vector<Rank> SspBound::gone(Rank worker) {
  waiting_.erase(worker);
  table_.remove(worker);
  return release();
}

std::vector<Rank> SspBound::waited_for(Rank worker) const {
  return table_.laggards(worker);
}

void SspBound::resumed() {
  for (std::uint32_t rank = 0; rank < store_.workers(); ++rank) {
    table_.set_clock(Rank{rank}, store_.desk(Rank{rank}).steps);
  }
}

std::vector<Rank> SspBound::release() {
  std::vector<Rank> released;
  for (const Rank worker : waiting_) {
    if (table_.may_start(worker)) {
      store_.read(worker);
      released.push_back(worker);
    }
  }
  for (const Rank worker : released) {
    waiting_.erase(worker);
  }
  return released;
}

}  // namespace syncopate
