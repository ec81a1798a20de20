#include "server/ssp_table.hpp"

#include <fmt/format.h>

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

bool SspTable::present(Rank worker) const {
  return worker.value < present_.size() && present_[worker.value];
}

std::size_t SspTable::checked(Rank worker) const {
  if (!present(worker)) {
    throw InternalError(fmt::format("worker {} is not in the table of clocks", worker.value));
  }
  return worker.value;
}

}  // namespace syncopate
