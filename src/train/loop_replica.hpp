#pragma once

#include <functional>
#include <optional>
#include <span>

#include "scheme/replica.hpp"
#include "train/step_handover.hpp"

namespace syncopate {

/// A replica whose gradients a program's own loop computes: `backward` waits for the loop's next
/// step, and ignores its batch, which has no samples but their number.
///
/// A program may say which values of the gradient are final while it computes the others
/// (`StepHandover::begin_pass`). A step without this becomes final as a whole.
///
/// The parameters are the program's own, so `initialise` keeps them. The learning rate is that of
/// the program's optimizer; a scheme that changes the rate multiplies it (`take_step`).
///
/// Once the loop has left, gradients are zero and have no samples: other workers may still train.
class LoopReplica : public Replica {
 public:
  struct Job {
    double learning_rate;  ///< of the job's configuration
    bool overlaps;         ///< gradients leave during the backward pass, as the loop reports them
  };
  /// The loop outlives the replica's training.
  void attach(StepHandover& loop, const Job& job);
  /// Of the model, where a step may leave some of them without a gradient; else 0.
  virtual std::size_t tensors() const { return 0; }

  bool reports_gradients() const final { return overlaps_; }
  /// As the loop has said them with its step.
  StepSettings step_settings() const final { return settings_; }
  GradientSet gradient_set() const final { return gradients_; }
  void use_gradients(const GradientSet& tensors) final;
  /// True where a `view` is the model's own memory, so that it costs nothing.
  virtual bool is_in_host_memory() const { return true; }

  void on_progress(PassDetail detail, const std::function<void()>& progressed) override;
  std::uint32_t samples_of_pass(const Batch& batch) final;
  PassResult backward(const Batch& batch, GradientSink* sink) final;
  using Replica::backward;
  void initialise(std::uint64_t seed) final;
  void set_learning_rate(double rate) final;
  void local_step() final;

  /// Errors of both: InternalError, since a job of programs has no evaluator.
  PassResult evaluate(const Batch& batch) final;
  void recompute_statistics(const std::function<bool(Batch& into)>& next) final;

 private:
  bool follows_loop() const final { return true; }
  /// One step of the program's optimizer, with its learning rate times `rate_factor`.
  virtual void take_step(double rate_factor) = 0;
  /// `take_step` moves these tensors, until the program's next pass.
  virtual void show_gradients(const GradientSet& /*tensors*/) {}

  /// Waits for the loop's step; without one the gradient is zero.
  PassResult take_gradient(GradientSink* sink);

  StepHandover* loop_ = nullptr;
  bool overlaps_ = false;
  double base_rate_ = 0;
  double rate_factor_ = 1;
  StepSettings settings_;
  GradientSet gradients_;  ///< of the loop's last step
  /// Those that the program's optimizer sees; empty where the program may have changed them.
  std::optional<GradientSet> shown_;
  std::function<void()> progressed_;
};

}  // namespace syncopate
