#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "optim/optimizer_state.hpp"

namespace syncopate {

/// A local step, as those see it who decide when replicas meet.
struct LocalStep {
  std::uint32_t samples = 0;
  Duration took{};          ///< data, forward, backward, update
  bool last = false;        ///< of all workers, where all are in step
  Duration communicated{};  ///< by the last meeting that has ended; zero where none has since
};

/// Says after which local steps a replica goes to meet the others.
class SyncSchedule {
 public:
  virtual ~SyncSchedule() = default;

  /// A step was taken: whether the replica meets the others now. A new round begins then.
  virtual bool due_after(const LocalStep& step) = 0;
  /// Of the next step; 0: all that are left of the mini-batch.
  virtual std::uint32_t step_samples() const { return 0; }
  /// What this worker goes on with after a synchronization, for a checkpoint. Empty: nothing.
  virtual OptimizerState state() const { return {}; }
  virtual void load(const OptimizerState& /*state*/) {}
};

/// Every so many steps, and after the last one.
class FixedSchedule : public SyncSchedule {
 public:
  explicit FixedSchedule(std::uint32_t steps) : steps_(steps) {}

  bool due_after(const LocalStep& step) override {
    done_ = (done_ + 1) % steps_;
    const bool due = done_ == 0 || step.last;
    done_ = due ? 0 : done_;
    return due;
  }

 private:
  std::uint32_t steps_;
  std::uint32_t done_ = 0;  ///< in this round
};

}  // namespace syncopate
