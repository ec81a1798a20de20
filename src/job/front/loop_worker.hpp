#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "scheme/gradient_set.hpp"
#include "scheme/replica.hpp"
#include "spec/config.hpp"
#include "train/program_replica.hpp"

namespace syncopate {

/// The worker of a program's loop: in a job of several processes (`ProgramWorker`), or by itself.
///
/// Thread: one at a time; `abandon` any.
class LoopWorker {
 public:
  virtual ~LoopWorker() = default;

  /// The backward pass of a step of `samples` samples begins. At most once a step.
  virtual void begin_pass(std::uint32_t samples) = 0;
  /// Values [begin, end) of the gradient are final; after `begin_pass`. Errors: ConfigError for
  /// values that were reported before.
  virtual void ready(std::size_t begin, std::size_t end) = 0;
  /// The replica holds the gradient of `samples` samples, those of the pass if it has begun.
  /// Returns when it holds the parameters for the next step.
  virtual void step(std::uint32_t samples, const StepSettings& settings,
                    const GradientSet& gradients) = 0;
  /// The same for a worker by itself whose program has looked at the gradient. Errors: ConfigError
  /// in a job of others.
  virtual void step_alone(std::uint32_t samples, bool finite) = 0;
  /// The samples of all workers on which the parameters have been trained, as known to this worker.
  virtual std::uint64_t samples() const = 0;
  /// The samples that the scheme wants in the next step; 0: as many as in any other.
  virtual std::uint32_t next_samples() const { return 0; }
  /// How all workers divide that step, by rank; empty: the scheme divides none.
  virtual std::span<const std::uint32_t> next_parts() const { return {}; }
  /// Between two steps: as `WorkerSession::align`.
  virtual void align(const std::string& place) = 0;
  /// Between two steps: the programs of all workers have given their replicas the same values.
  virtual void take_replica() = 0;
  /// No step follows. Waits for the loops of all workers; then the replica holds the job's model.
  virtual void finish() = 0;
  /// The program ends its loop by an error, which ends the job for all workers. The first reason
  /// counts.
  virtual void abandon(const std::string& reason) = 0;
};

/// A worker by itself: plain training by the optimizer of the replica. `samples`: of an epoch.
std::unique_ptr<LoopWorker> lone_worker(std::unique_ptr<ProgramReplica> replica,
                                        const TrainConfig& config, std::uint64_t samples);

}  // namespace syncopate
