#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "server/consistency.hpp"

namespace syncopate {

/// The gradients of all workers for their next updates (Ringleader ASGD, Maranjyan and Richtárik
/// 2025). Plain asgd updates by the gradient of one worker, so its model follows the data of the
/// workers that push often. Here each worker counts alike in each update.
///
/// A round has two parts. First the table collects at least one gradient of each worker, and of a
/// worker that pushes several their mean: the model does not change meanwhile. Then each worker's
/// next push brings one update by the mean over all workers; what the workers push in this part is
/// kept for the next round. So a gradient misses less than two updates for each worker.
///
/// Thread: one at a time.
class GradientTable {
 public:
  GradientTable(std::size_t values, std::size_t workers);

  /// Adds a gradient of `worker`, of this weight among its own. Returns true if it brings an update
  /// by `mean()`.
  bool add(Rank worker, std::span<const float> gradient, float weight);
  /// Over the workers, in the round that makes updates.
  std::span<const float> mean() const { return mean_; }

  /// The worker pushes nothing for now, so no round waits for it. Its gradients are dropped.
  void remove(Rank worker);
  void restore(Rank worker) { rows_.at(worker.value).is_present = true; }

 private:
  struct Row {
    std::vector<float> sum;  ///< of weight · gradient
    double weight = 0;       ///< of the gradients in it
    bool is_present = true;
    bool has_updated = false;  ///< in this round
  };

  template <class Condition>
  bool all(Condition condition) const;
  void begin_updates();

  std::vector<Row> rows_;  ///< by rank
  std::vector<float> mean_;
  bool collects_ = true;
};

/// Drives a store by such a table. A worker gets the newest model at once, for each push.
class TableUpdates final : public Consistency {
 public:
  explicit TableUpdates(ShardStore& store);

  std::vector<Rank> on_request(Rank worker, bool push, bool pull) override;
  std::vector<Rank> on_gone(Rank worker) override;
  std::vector<Rank> on_rest(Rank worker) override { return on_gone(worker); }
  void on_return(Rank worker) override { table_.restore(worker); }

 private:
  ShardStore& store_;
  GradientTable table_;
};

}  // namespace syncopate
