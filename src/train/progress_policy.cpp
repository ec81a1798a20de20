#include "train/progress_policy.hpp"

#include <algorithm>
#include <cmath>

#include "base/errors.hpp"

namespace syncopate {

double ProgressPolicy::steps_per_epoch() const {
  return static_cast<double>(job_.train_samples) / job_.samples_per_step;
}

DataPosition ProgressPolicy::first_position(const Standing& start,
                                            std::uint32_t step_samples) const {
  if (step_samples == 0) {
    return {.batch = start.step};
  }
  const std::uint64_t steps_each = (job_.batch_size + step_samples - 1) / step_samples;
  return {.batch = start.step / steps_each, .taken = start.step % steps_each * step_samples};
}

double ProgressPolicy::steps(const Standing& standing) const {
  return static_cast<double>(standing.samples) / job_.samples_per_step;
}

double ProgressPolicy::epochs(const Standing& standing) const {
  return static_cast<double>(standing.samples) / static_cast<double>(job_.train_samples);
}

double ProgressPolicy::epoch_of_step(const Standing& /*standing*/, double samples_before) const {
  return samples_before / static_cast<double>(job_.train_samples);
}

bool ProgressPolicy::is_complete(const Standing& standing) const {
  return standing.samples + standing.pending_samples >= job_.samples_to_train ||
         is_out_of_steps(standing);
}

bool ProgressPolicy::is_out_of_steps(const Standing& standing) const {
  return job_.max_steps && standing.step >= *job_.max_steps;
}

double LockstepPolicy::steps_per_epoch() const {
  return static_cast<double>(job().feed.steps_per_epoch());
}

double LockstepPolicy::steps(const Standing& standing) const {
  return static_cast<double>(standing.step);
}

double LockstepPolicy::epochs(const Standing& standing) const {
  return job().own_loop ? ProgressPolicy::epochs(standing) : epochs_by_steps(standing);
}

double LockstepPolicy::epochs_by_steps(const Standing& standing) const {
  return job().feed.epochs_before(job().feed.position_after(Step{standing.step}));
}

double LockstepPolicy::epoch_of_step(const Standing& standing, double /*samples_before*/) const {
  return epochs_by_steps(standing);
}

bool LockstepPolicy::is_complete(const Standing& standing) const {
  return standing.step >= last_step();
}

std::uint64_t LockstepPolicy::last_step() const {
  const auto steps = static_cast<std::uint64_t>(std::ceil(job().epochs * steps_per_epoch() - 1e-6));
  return std::min(steps, job().max_steps.value_or(steps));
}

LocalRoundsPolicy::LocalRoundsPolicy(const Job& job)
    : ProgressPolicy(job, {.skips_empty_batches = true,
                           .agrees_on_evaluations = false,
                           .pauses_clock = false,
                           .restarts_at_checkpoints = true}) {}

/// Every worker begins in its part at the same fraction that all workers have reached in the data.
DataPosition LocalRoundsPolicy::first_position(const Standing& start,
                                               std::uint32_t /*step_samples*/) const {
  return {.batch = static_cast<std::uint64_t>(steps(start))};
}

AsynchronousPolicy::AsynchronousPolicy(const Job& job)
    : ProgressPolicy(job, {.saves_all_workers = false, .stops_at_once = true}) {}

double AsynchronousPolicy::steps(const Standing& standing) const {
  return static_cast<double>(standing.samples + standing.pending_samples) / job().samples_per_step;
}

std::unique_ptr<ProgressPolicy> make_progress_policy(SyncMode mode,
                                                     const ProgressPolicy::Job& job) {
  switch (mode) {
    case SyncMode::lockstep: return std::make_unique<LockstepPolicy>(job);
    case SyncMode::local_rounds: return std::make_unique<LocalRoundsPolicy>(job);
    case SyncMode::asynchronous: return std::make_unique<AsynchronousPolicy>(job);
  }
  throw InternalError("a sync mode without a progress policy");
}

void SampleEstimate::synchronized(std::uint64_t samples, std::uint64_t since) {
  const double brought = own_ - static_cast<double>(since);
  if (brought > 0 && samples > 0) {
    share_ = std::min(1.0, brought / static_cast<double>(samples));
  }
  synchronized_ += static_cast<double>(samples);
  own_ = static_cast<double>(since);
}

double SampleEstimate::when_taken(std::uint32_t step_samples) const {
  return synchronized_ + own_ / share_ + step_samples * std::max(0.0, 1 / share_ - 1 / step_share_);
}

}  // namespace syncopate
