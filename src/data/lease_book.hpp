#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace syncopate {

/// A range of an epoch's order that one worker trains on.
struct Lease {
  Epoch epoch{};
  std::uint64_t begin = 0;
  std::uint64_t end = 0;               ///< behind the last sample
  std::vector<std::uint32_t> parts{};  ///< of a step, by rank, in place of a range (`StepBook`)

  std::uint64_t samples() const { return end - begin; }
  friend bool operator==(const Lease&, const Lease&) = default;
};

/// A worker asks for its next lease.
struct LeaseRequest {
  Rank worker{};
  Epoch epoch{};  ///< the one it is in: it takes no samples of an earlier one any more
  std::uint64_t step_size = 0;  ///< samples of a step of this worker
  // Since its request before:
  std::uint64_t trained = 0;  ///< samples of the steps that have ended, in the order of its leases
  Duration taken{};           ///< the time of these steps
  // In place of a range:
  std::uint64_t step = 0;              ///< whose division it asks for
  std::vector<std::uint32_t> parts{};  ///< the proposed one, by rank
};

/// Leases ranges of each epoch's order to the workers that ask, so that every sample is leased
/// exactly once an epoch though workers differ in speed.
///
/// Algorithm: guided self-scheduling (Polychronopoulos & Kuck 1987) weighted by speed, as in
/// weighted factoring (Hummel, Schmidt, Uma & Wein 1996). A lease is a quarter of the samples that
/// its worker will train on until the end of the epoch, if all workers keep their speeds, in whole
/// steps of the worker and at least one; none leaves a single sample. So leases shrink to single
/// steps towards the end of an epoch, and a worker that slows down holds few samples back. A
/// worker's first lease is one step, and each further one is at most twice as long as the one
/// before. So the first measurements of speeds, some of which come later than others, decide about
/// few samples.
///
/// Invariant: the leases of an epoch do not overlap, and leave no gap between them.
/// Pure: a lease follows from the requests so far.
class LeaseBook {
 public:
  /// Leases `samples` samples per epoch to `workers` workers. Errors: ConfigError if one of them is
  /// 0.
  LeaseBook(std::uint64_t samples, std::uint32_t workers);

  std::uint64_t samples() const { return samples_; }

  /// Leases a range of the worker's epoch, or, if that is leased to its end, of the next one that
  /// is not.
  /// Errors: ProtocolError if the job has no such worker, or its steps have no samples.
  Lease next(const LeaseRequest& request);

  /// Samples of an epoch that are not leased.
  std::uint64_t left(Epoch epoch) const;
  /// The ranges of `worker` that it has not reported as trained, in the order of its leases. Those
  /// of epochs that it has left are not among them.
  std::vector<Lease> unfinished(Rank worker) const;

 private:
  struct Worker {
    std::deque<Lease> held{};
    std::uint64_t last_steps = 0;   ///< of its last lease
    std::optional<double> speed{};  ///< samples a second
  };

  void take_report(Worker& worker, const LeaseRequest& request);
  std::uint64_t steps_for(const Worker& worker, std::uint64_t step_size, std::uint64_t left) const;
  double share_of(double speed) const;

  std::uint64_t samples_;
  std::vector<Worker> workers_;
  std::map<Epoch, std::uint64_t> leased_;  ///< samples, from the first on
};

}  // namespace syncopate
