#include "train/loop_replica.hpp"

#include <algorithm>
#include <utility>

#include "base/errors.hpp"
#include "train/reported_gradient.hpp"

namespace syncopate {

void LoopReplica::attach(StepHandover& loop, const Job& job) {
  loop_ = &loop;
  base_rate_ = job.learning_rate;
  overlaps_ = job.overlaps;
  gradients_ = GradientSet(tensors(), /*all=*/true);
}

void LoopReplica::on_progress(PassDetail /*detail*/, const std::function<void()>& progressed) {
  progressed_ = progressed;
}

/// A program begins its pass with its first gradient, behind the forward pass.
std::uint32_t LoopReplica::samples_of_pass(const Batch& /*batch*/) {
  const std::uint32_t samples = loop_->samples_of_pass(progressed_).value_or(0);
  report_forward_done();
  return samples;
}

PassResult LoopReplica::backward(const Batch& /*batch*/, GradientSink* sink) {
  if (sink == nullptr) {
    return take_gradient(nullptr);
  }
  ReportedGradient gradient(*sink, view(ReplicaVector::grads).size());
  const PassResult result = take_gradient(&gradient);
  gradient.report_rest();
  return result;
}

PassResult LoopReplica::take_gradient(GradientSink* sink) {
  if (const auto step = loop_->next(progressed_, sink)) {
    settings_ = step->settings;
    gradients_ = step->gradients;
    shown_ = gradients_;
    return {.samples = step->samples, .loss_sum = step->loss_sum};
  }
  settings_ = {};  // a schedule may change them when the loop has left
  gradients_ = GradientSet(tensors(), /*all=*/false);
  shown_.reset();  // the loop may have ended by taking its gradients away
  const std::span<float> grads = view(ReplicaVector::grads);
  std::ranges::fill(grads, 0.0F);
  store(ReplicaVector::grads);
  return {};
}

void LoopReplica::use_gradients(const GradientSet& tensors) {
  if (tensors != shown_) {
    shown_ = tensors;
    show_gradients(tensors);
  }
}

void LoopReplica::initialise(std::uint64_t /*seed*/) {}

void LoopReplica::set_learning_rate(double rate) {
  rate_factor_ = base_rate_ > 0 ? rate / base_rate_ : 1;
}

void LoopReplica::local_step() {
  take_step(rate_factor_);
}

PassResult LoopReplica::evaluate(const Batch& /*batch*/) {
  throw InternalError("the replica of a program's own loop was asked to evaluate");
}

void LoopReplica::recompute_statistics(const std::function<bool(Batch& into)>& /*next*/) {
  throw InternalError("the replica of a program's own loop was asked for statistics");
}

}  // namespace syncopate
