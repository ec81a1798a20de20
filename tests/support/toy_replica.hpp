#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "scheme/replica.hpp"

namespace syncopate {

/// Replicas small enough to check by hand, for tests and simulations without a tensor library.
/// Their optimizer is SGD with momentum: v = m v + g, w −= rate · v.
///
/// Each keeps one buffer, `feature_mean`: the running mean of the features it has seen, as
/// BatchNorm keeps one, with momentum 0.1.
class ToyReplica : public Replica {
 public:
  struct Options {
    std::size_t features = 1;
    std::uint32_t classes = 2;
    double momentum = 0;
    std::optional<double> clip_norm{};  ///< the greatest norm of a gradient; empty: any
  };

  std::vector<TensorInfo> layout(ReplicaVector which) const override;
  std::span<float> view(ReplicaVector which) override;
  void store(ReplicaVector /*which*/) override {}

  using Replica::backward;
  bool reports_gradients() const override { return true; }
  /// Reports its gradient in three pieces, the last one first, as layers do.
  PassResult backward(const Batch& batch, GradientSink* sink) override;
  PassResult evaluate(const Batch& batch) override;
  void recompute_statistics(const std::function<bool(Batch& into)>& next) override;
  void initialise(std::uint64_t seed) override;

  void set_learning_rate(double rate) override { rate_ = static_cast<float>(rate); }
  void clip_gradient() override;
  void local_step() override;

  OptimizerState optimizer_state() const override;
  void load_optimizer_state(const OptimizerState& state) override;

 protected:
  ToyReplica(Options options, std::size_t params);

  /// The loss of one sample, and whether it was classified correctly.
  struct SampleResult {
    double loss = 0;
    bool correct = false;
  };
  /// Adds a sample's gradient, times `share`, to `grads`; with an empty span it only computes the
  /// loss.
  virtual SampleResult pass(std::span<const float> features, std::int64_t label, float share,
                            std::span<float> grads) const = 0;

  const Options& options() const { return options_; }
  std::span<const float> params() const { return params_; }

 private:
  PassResult pass_over(const Batch& batch, std::span<float> grads) const;
  void report(GradientSink& sink) const;
  void move_feature_mean(std::span<const float> features, float share);

  Options options_;
  std::vector<float> params_;
  std::vector<float> grads_;
  std::vector<float> feature_mean_;
  std::vector<float> velocity_;
  float rate_ = 0.1F;
};

/// ½ ‖w − x‖²: the minimum is the mean of the samples, and a mean gradient is w minus their mean.
class QuadraticReplica : public ToyReplica {
 public:
  explicit QuadraticReplica(Options options) : ToyReplica(options, options.features) {}

 private:
  SampleResult pass(std::span<const float> features, std::int64_t label, float share,
                    std::span<float> grads) const override;
};

/// Multinomial logistic regression with bias: cross entropy of softmax(W x + b).
class LogisticReplica : public ToyReplica {
 public:
  explicit LogisticReplica(Options options)
      : ToyReplica(options, (options.features + 1) * options.classes) {}

 private:
  SampleResult pass(std::span<const float> features, std::int64_t label, float share,
                    std::span<float> grads) const override;
};

}  // namespace syncopate
