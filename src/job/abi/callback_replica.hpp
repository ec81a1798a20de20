#pragma once

#include <syncopate.h>

#include <optional>

#include "job/abi/callback_allreduce.hpp"
#include "train/program_replica.hpp"

namespace syncopate::abi {

/// A replica whose vectors and optimizer are behind the callbacks of a program.
class CallbackReplica final : public ProgramReplica {
 public:
  /// Errors: ConfigError if the replica has no parameters, or lacks a callback that it needs.
  explicit CallbackReplica(const syncopate_replica& callbacks);

  /// Returns one tensor for the whole vector, because programs do not describe their tensors.
  std::vector<TensorInfo> layout(ReplicaVector which) const override;
  /// Errors of these functions: Error, with the reason that the program gives.
  std::span<float> view(ReplicaVector which) override;
  void store(ReplicaVector which) override;
  void move_into(SharedMemory& memory) override;
  NativeAllreduce* allreduce_of_program() override { return allreduce_ ? &*allreduce_ : nullptr; }
  bool is_in_host_memory() const override { return callbacks_.store == nullptr; }
  std::size_t tensors() const override { return callbacks_.tensor_count; }

  /// Errors: InternalError, since a job of programs has no checkpoints.
  OptimizerState optimizer_state() const override;
  void load_optimizer_state(const OptimizerState& state) override;

 private:
  void take_step(double rate_factor) override;
  void show_gradients(const GradientSet& tensors) override;
  std::size_t size(ReplicaVector which) const;
  void expect_success(const char* result) const;

  syncopate_replica callbacks_;
  std::optional<CallbackAllreduce> allreduce_;
};

}  // namespace syncopate::abi
