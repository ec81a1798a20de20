#include "train/loop_replica.hpp"

#include <algorithm>
#include <utility>

#include "base/errors.hpp"

namespace syncopate {

void LoopReplica::attach(StepHandover& loop, double learning_rate) {
  loop_ = &loop;
  base_rate_ = learning_rate;
}

void LoopReplica::on_progress(PassDetail /*detail*/, std::function<void()> progressed) {
  progressed_ = std::move(progressed);
}

PassResult LoopReplica::backward(const Batch& /*batch*/, GradientSink* /*sink*/) {
  if (const auto step = loop_->next(progressed_)) {
    return {.samples = step->samples, .loss_sum = step->loss_sum};
  }
  const std::span<float> grads = view(ReplicaVector::grads);
  std::ranges::fill(grads, 0.0F);
  store(ReplicaVector::grads);
  return {};
}

void LoopReplica::initialise(std::uint64_t /*seed*/) {}

void LoopReplica::set_learning_rate(double rate) {
  rate_factor_ = base_rate_ > 0 ? rate / base_rate_ : 1;
}

void LoopReplica::local_step() {
  if (!loop_->has_left() || has_gradient()) {
    take_step(rate_factor_);
  }
}

bool LoopReplica::has_gradient() {
  return std::ranges::any_of(view(ReplicaVector::grads), [](float value) { return value != 0; });
}

PassResult LoopReplica::evaluate(const Batch& /*batch*/) {
  throw InternalError("the replica of a program's own loop was asked to evaluate");
}

void LoopReplica::recompute_statistics(const std::function<bool(Batch& into)>& /*next*/) {
  throw InternalError("the replica of a program's own loop was asked for statistics");
}

}  // namespace syncopate
