#pragma once

#include "pacer/pacer_client.hpp"
#include "scheme/sync_schedule.hpp"

namespace syncopate {

/// Tells the pacer of every step and goes on until it says *ready* (ESync, Li et al. 2019, algorithm 1,
/// without its round trip). The mini-batch in hand is never dropped: what the pacer says while a step
/// is under way counts at the step's end.
class PacedSchedule : public SyncSchedule {
 public:
  struct Options {
    FirstPace first;
    std::uint32_t batch_size = 0;  ///< a step of that many takes a mini-batch as it comes
    std::uint64_t done = 0;        ///< rounds that came before, in a run that is resumed
  };

  /// `line` outlives this.
  PacedSchedule(PacerClient& pacer, const Options& options)
      : pacer_(pacer),
        first_(options.first),
        batch_size_(options.batch_size),
        round_(options.done + 1) {}

  bool due_after(const LocalStep& step) override;
  std::uint32_t step_samples() const override;
  OptimizerState state() const override;
  void load(const OptimizerState& state) override;

 private:
  bool is_due() const;
  std::uint32_t ordered_samples() const;

  PacerClient& pacer_;
  FirstPace first_;  ///< what holds until the pacer says otherwise
  std::uint32_t batch_size_;
  std::uint64_t round_;
  std::uint64_t steps_ = 0;  ///< of this round
};

}  // namespace syncopate
