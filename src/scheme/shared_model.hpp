#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "scheme/scheme.hpp"

namespace syncopate {

/// One vector of parameters in memory that the workers of a host share, without a lock.
///
/// Every access is a relaxed atomic operation on one value. As in Hogwild, workers see each other's
/// additions with a delay and in any order, but no addition is lost and there is no data race.
/// Several processes may map the same bytes.
///
/// Threads: any, at any time; `load` only before the others begin.
class SharedModel {
 public:
  struct Size {
    std::size_t params = 0;
    std::size_t buffers = 0;
    std::uint32_t workers = 1;
  };

  /// Totals of all workers.
  struct Counts {
    std::uint64_t updates = 0;
    std::uint64_t samples = 0;
    double loss_sum = 0;
  };

  static std::size_t bytes_for(const Size& size);

  /// Uses `memory`, at least `bytes_for(size)` bytes, which are zero before their first use.
  SharedModel(std::span<std::byte> memory, const Size& size);

  const Size& size() const { return size_; }

  /// Sets the initial parameters and totals.
  void load(std::span<const float> params, const Counts& done);
  /// Replaces the parameters; no worker adds to them meanwhile.
  void replace(std::span<const float> params);
  void read(std::span<float> params) const;
  /// params += after − before, value by value.
  void add_difference(std::span<const float> after, std::span<const float> before);

  /// Stores a worker's buffers, and adds the samples over which they were gathered since its last
  /// call.
  void store_buffers(Rank worker, std::span<const float> buffers, std::uint64_t samples);
  /// Σ n_i b_i / Σ n_i over the workers that have stored buffers, n_i the samples of worker i.
  /// Without such a worker `mean` does not change.
  void read_mean_buffers(std::span<float> mean) const;

  /// Stores the progress of a worker whose steps the model contains.
  void store_position(Rank worker, const WorkerPosition& position);
  /// The progress of all workers, by rank.
  std::vector<WorkerPosition> positions() const;

  Counts counts() const;
  /// Counts one update; returns the number of updates before it.
  std::uint64_t count(std::uint64_t samples, double loss_sum);

 private:
  struct Head;

  Size size_;
  Head* head_;
  std::span<float> params_;
  std::span<float> buffers_;  ///< of all workers, by rank
};

/// The synchronization rounds of an asynchronous worker with a shared model. The counters of the
/// model are totals of the job; a round holds the differences since this worker's previous round.
class SharedModelRounds {
 public:
  /// `start`: the counters when this worker began. `model` outlives this.
  SharedModelRounds(const SharedModel& model, const SharedModel::Counts& start)
      : model_(model), last_(start) {}

  SyncRound next(const StepFacts& facts) {
    const SharedModel::Counts now = model_.counts();
    const SharedModel::Counts before = std::exchange(last_, now);
    return {.round = Round{now.updates},
            .samples = now.samples - before.samples,
            .loss_sum = now.loss_sum - before.loss_sum,
            .paused = facts.paused,
            .agreed = facts.requests};
  }

 private:
  const SharedModel& model_;
  SharedModel::Counts last_;
};

}  // namespace syncopate
