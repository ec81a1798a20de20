#pragma once

#include <cstdint>

namespace syncopate {

/// How many samples a job has trained on by the time a worker takes a step: what its learning rate
/// follows from. Between two synchronizations a worker counts its own samples, and expects of the
/// others as many as their speeds make likely.
///
/// With S the job's samples at the last synchronization, x this worker's since, b those of the step, a
/// its share of the speed of all and a₀ its share of a step of all workers, the step is taken at
///
///     S + x / a + b · max(0, 1 / a − 1 / a₀)
///
/// where the last term is what faster workers take in while this one computes its step. At equal pace
/// (a = a₀) that is the count before the step, as in sequential SGD.
///
/// Exact at each synchronization. Thread: one.
class SampleEstimate {
 public:
  struct Options {
    std::uint64_t done = 0;  ///< before this worker's first step, in a run that is resumed
    double step_share = 1;   ///< a₀: this worker's samples of a step over those of all
    double speed_share = 0;  ///< a, in a run that is resumed; 0: unknown
  };

  explicit SampleEstimate(const Options& options)
      : synchronized_(static_cast<double>(options.done)),
        step_share_(options.step_share),
        share_(options.speed_share > 0 ? options.speed_share : options.step_share) {}

  /// This worker has taken a step.
  void trained(std::uint64_t samples) { own_ += static_cast<double>(samples); }
  /// The speeds of workers are known: a.
  void expect_share(double share) { share_ = share; }
  /// A synchronization has ended, over `samples` of all workers; `since` of this worker's own samples
  /// are not among them. Where it had samples among them, they tell its share.
  void synchronized(std::uint64_t samples, std::uint64_t since);

  double when_taken(std::uint32_t step_samples) const;

  double share() const { return share_; }

 private:
  double synchronized_;
  double own_ = 0;
  double step_share_;
  double share_;
};

}  // namespace syncopate
