#include "job/abi/callback_replica.hpp"

#include <algorithm>
#include <memory>

#include "base/errors.hpp"
#include "job/abi/objects.hpp"
#include "transport/shared_memory.hpp"

namespace syncopate::abi {
namespace {

syncopate_vector vector_of(ReplicaVector which) {
  switch (which) {
    case ReplicaVector::params: return SYNCOPATE_PARAMETERS;
    case ReplicaVector::grads: return SYNCOPATE_GRADIENTS;
    case ReplicaVector::buffers: return SYNCOPATE_BUFFERS;
  }
  throw InternalError("a replica was asked for a vector that it does not have");
}

[[noreturn]] void refuse_checkpoint() {
  throw InternalError("a program's own replica was asked for a checkpoint");
}

}  // namespace

CallbackReplica::CallbackReplica(const syncopate_replica& callbacks) : callbacks_(callbacks) {
  if (callbacks.parameter_count == 0) {
    throw ConfigError("the replica has no parameters to train");
  }
  if (callbacks.view == nullptr || callbacks.take_step == nullptr) {
    throw ConfigError("a replica needs the callbacks view and take_step");
  }
  if (callbacks.tensor_count > 0 && callbacks.use_gradients == nullptr) {
    throw ConfigError("a replica with a tensor_count needs the callback use_gradients");
  }
  if (callbacks.begin_sum != nullptr) {
    allreduce_.emplace(callbacks.begin_sum, callbacks.user, callbacks.sum_members);
  }
}

/// Ends training with the reason of a callback that failed.
void CallbackReplica::expect_success(const char* result) const {
  const char* const reason = callbacks_.reason != nullptr ? *callbacks_.reason : result;
  if (reason != nullptr) {
    throw Error(reason);
  }
}

std::size_t CallbackReplica::size(ReplicaVector which) const {
  return which == ReplicaVector::buffers ? callbacks_.buffer_count : callbacks_.parameter_count;
}

std::vector<TensorInfo> CallbackReplica::layout(ReplicaVector which) const {
  if (size(which) == 0) {
    return {};
  }
  return {{.name = which == ReplicaVector::buffers ? "buffers" : "parameters",
           .shape = {static_cast<std::int64_t>(size(which))},
           .offset = 0}};
}

std::span<float> CallbackReplica::view(ReplicaVector which) {
  if (size(which) == 0) {
    return {};
  }
  float* values = nullptr;
  expect_success(callbacks_.view(callbacks_.user, vector_of(which), &values));
  if (values == nullptr) {
    throw Error(
        "the program's replica gave no memory for a vector: its callback view must set the "
        "pointer");
  }
  return {values, size(which)};
}

void CallbackReplica::store(ReplicaVector which) {
  if (callbacks_.store != nullptr && size(which) > 0) {
    expect_success(callbacks_.store(callbacks_.user, vector_of(which)));
  }
}

void CallbackReplica::move_into(SharedMemory& memory) {
  if (callbacks_.move == nullptr) {
    return;
  }
  for (const ReplicaVector which :
       {ReplicaVector::params, ReplicaVector::grads, ReplicaVector::buffers}) {
    const std::span<const float> values = view(which);
    if (values.empty()) {
      continue;
    }
    auto place = std::make_unique<syncopate_memory>();
    place->values = make_values(&memory, values.size());
    std::ranges::copy(values, place->values.get());
    float* const begin = place->values.get();
    expect_success(callbacks_.move(callbacks_.user, vector_of(which), begin, place.release()));
  }
}

void CallbackReplica::take_step(double rate_factor) {
  expect_success(callbacks_.take_step(callbacks_.user, rate_factor));
}

void CallbackReplica::show_gradients(const GradientSet& tensors) {
  expect_success(callbacks_.use_gradients(callbacks_.user, tensors.flags().data()));
}

OptimizerState CallbackReplica::optimizer_state() const {
  refuse_checkpoint();
}

void CallbackReplica::load_optimizer_state(const OptimizerState& /*state*/) {
  refuse_checkpoint();
}

}  // namespace syncopate::abi
