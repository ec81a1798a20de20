#include "server/ssp_bound.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.hpp"

namespace syncopate {

SspTable::SspTable(const Options& options)
    : slack_(options.slack), clocks_(options.workers), present_(options.workers, true) {}

bool SspTable::may_start(Rank worker) const {
  return laggards(worker).empty();
}

std::vector<Rank> SspTable::laggards(Rank worker) const {
  const std::uint64_t own = clock(worker);
  std::vector<Rank> behind;
  for (std::uint32_t rank = 0; rank < clocks_.size(); ++rank) {
    if (present_[rank] && clocks_[rank] + slack_ < own) behind.push_back(Rank{rank});
  }
  return behind;
}

void SspTable::finished(Rank worker) {
  ++clocks_[checked(worker)];
}

void SspTable::remove(Rank worker) {
  present_[checked(worker)] = false;
}

void SspTable::restore(Rank worker) {
  clocks_.at(worker.value) = *std::ranges::max_element(clocks_);
  present_[worker.value] = true;
}

bool SspTable::present(Rank worker) const {
  return worker.value < present_.size() && present_[worker.value];
}

std::size_t SspTable::checked(Rank worker) const {
  if (!present(worker)) {
    throw InternalError(fmt::format("worker {} is not in the table of clocks", worker.value));
  }
  return worker.value;
}

SspBound::SspBound(ShardStore& store, std::uint32_t slack)
    : store_(store), table_({.workers = store.workers(), .slack = slack}) {}

std::vector<Rank> SspBound::on_request(Rank worker, bool push, bool /*pull*/) {
  if (push) {
    store_.apply(worker, false);
    table_.finished(worker);
  }
  waiting_.insert(worker);
  return release();
}

std::vector<Rank> SspBound::on_gone(Rank worker) {
  waiting_.erase(worker);
  table_.remove(worker);
  return release();
}

std::vector<Rank> SspBound::waited_for(Rank worker) const {
  return table_.laggards(worker);
}

void SspBound::on_resumed() {
  for (std::uint32_t rank = 0; rank < store_.workers(); ++rank) {
    table_.set_clock(Rank{rank}, store_.slot(Rank{rank}).steps);
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
