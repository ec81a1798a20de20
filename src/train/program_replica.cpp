#include "train/program_replica.hpp"

#include <algorithm>

#include "base/errors.hpp"

namespace syncopate {

void ProgramReplica::attach(const Job& job) {
  base_rate_ = job.learning_rate;
  overlaps_ = job.overlaps;
  gradients_ = GradientSet(tensors(), /*all=*/true);
}

void ProgramReplica::computed(const StepSettings& settings, const GradientSet& gradients) {
  settings_ = settings;
  gradients_ = gradients;
  shown_ = gradients;
}

void ProgramReplica::discard_gradient() {
  settings_ = {};  // a schedule may change them after the end of the loop
  gradients_ = GradientSet(tensors(), /*all=*/false);
  shown_.reset();  // the loop may have ended by taking its gradients away
  Replica::discard_gradient();
}

void ProgramReplica::use_gradients(const GradientSet& tensors) {
  if (tensors != shown_) {
    shown_ = tensors;
    show_gradients(tensors);
  }
}

void ProgramReplica::initialise(std::uint64_t /*seed*/) {}

void ProgramReplica::set_learning_rate(double rate) {
  rate_factor_ = base_rate_ > 0 ? rate / base_rate_ : 1;
}

void ProgramReplica::local_step() {
  take_step(rate_factor_);
}

PassResult ProgramReplica::backward(const Batch& /*batch*/, GradientSink* /*sink*/) {
  throw InternalError("the replica of a program was asked for a backward pass");
}

PassResult ProgramReplica::evaluate(const Batch& /*batch*/) {
  throw InternalError("the replica of a program was asked to evaluate");
}

void ProgramReplica::recompute_statistics(const std::function<bool(Batch& into)>& /*next*/) {
  throw InternalError("the replica of a program was asked for statistics");
}

}  // namespace syncopate
