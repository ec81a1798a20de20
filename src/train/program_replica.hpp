#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "scheme/replica.hpp"

namespace syncopate {

/// A replica whose gradients a program's own loop computes.
///
/// The parameters are the program's own, so `initialise` keeps them. The learning rate is that of
/// the program's optimizer; a scheme that changes the rate multiplies it (`take_step`).
class ProgramReplica : public Replica {
 public:
  struct Job {
    double learning_rate;  ///< of the job's configuration
    bool overlaps;         ///< gradients leave during the pass, as the program reports them
  };
  void attach(const Job& job);
  /// Of the model, where a step may leave some of them without a gradient; else 0.
  virtual std::size_t tensors() const { return 0; }
  /// The program has computed the gradient of a step: with these settings of its optimizer, and
  /// of these tensors.
  void computed(const StepSettings& settings, const GradientSet& gradients);

  bool reports_gradients() const final { return overlaps_; }
  StepSettings step_settings() const final { return settings_; }
  GradientSet gradient_set() const final { return gradients_; }
  void use_gradients(const GradientSet& tensors) final;
  void discard_gradient() final;
  /// True where a `view` is the model's own memory, so that it costs nothing.
  virtual bool is_in_host_memory() const { return true; }

  void initialise(std::uint64_t seed) final;
  void set_learning_rate(double rate) final;
  void trained_on(std::uint64_t samples) final { samples_ = samples; }
  std::uint64_t samples() const { return samples_; }
  void local_step() final;

  /// Errors of these: InternalError, since the program computes, and its job has no evaluator.
  using Replica::backward;
  PassResult backward(const Batch& batch, GradientSink* sink) final;
  PassResult evaluate(const Batch& batch) final;
  void recompute_statistics(const std::function<bool(Batch& into)>& next) final;

 private:
  bool follows_loop() const final { return true; }
  /// One step of the program's optimizer, with its learning rate times `rate_factor`.
  virtual void take_step(double rate_factor) = 0;
  /// `take_step` moves these tensors, until the program's next pass.
  virtual void show_gradients(const GradientSet& /*tensors*/) {}

  bool overlaps_ = false;
  double base_rate_ = 0;
  double rate_factor_ = 1;
  std::uint64_t samples_ = 0;  ///< of all workers, on which the parameters have been trained
  StepSettings settings_;
  GradientSet gradients_;  ///< of the program's last step
  /// Those that the program's optimizer sees; empty where the program may have changed them.
  std::optional<GradientSet> shown_;
};

}  // namespace syncopate
