#include "server/gradient_table.hpp"

#include <algorithm>

#include "kernels/optimizer_steps.hpp"

namespace syncopate {

GradientTable::GradientTable(std::size_t values, std::size_t workers)
    : rows_(workers, Row{.sum = std::vector<float>(values)}), mean_(values) {}

template <class Condition>
bool GradientTable::all(Condition condition) const {
  return std::ranges::all_of(rows_,
                             [&](const Row& row) { return !row.is_present || condition(row); });
}

bool GradientTable::add(Rank worker, std::span<const float> gradient, float weight) {
  Row& row = rows_.at(worker.value);
  add_scaled(row.sum, weight, gradient);
  row.weight += double{weight};
  if (collects_ && all([](const Row& any) { return any.weight > 0; })) {
    begin_updates();
  }
  if (collects_ || row.has_updated) {
    return false;
  }
  row.has_updated = true;
  collects_ = all([](const Row& any) { return any.has_updated; });
  return true;
}

void GradientTable::begin_updates() {
  const auto present = std::ranges::count_if(rows_, &Row::is_present);
  std::ranges::fill(mean_, 0.0F);
  for (Row& row : rows_) {
    if (row.is_present) {
      add_scaled(mean_, static_cast<float>(1 / (row.weight * static_cast<double>(present))),
                 row.sum);
    }
    std::ranges::fill(row.sum, 0.0F);
    row.weight = 0;
    row.has_updated = false;
  }
  collects_ = false;
}

void GradientTable::remove(Rank worker) {
  Row& row = rows_.at(worker.value);
  row.is_present = false;
  row.weight = 0;
  std::ranges::fill(row.sum, 0.0F);
  collects_ = collects_ || all([](const Row& any) { return any.has_updated; });
}

TableUpdates::TableUpdates(ShardStore& store)
    : store_(store), table_(store.params().size(), store.workers()) {}

std::vector<Rank> TableUpdates::on_request(Rank worker, bool push, bool pull) {
  if (push && store_.admit(worker)) {
    const WorkerSlot& slot = store_.slot(worker);
    if (table_.add(worker, slot.in, slot.facts.weight)) {
      store_.update(table_.mean());
    }
  }
  if (pull) {
    store_.read(worker);
  }
  return {worker};
}

std::vector<Rank> TableUpdates::on_gone(Rank worker) {
  table_.remove(worker);
  return {};
}

}  // namespace syncopate
