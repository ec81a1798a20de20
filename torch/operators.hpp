#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <functional>

#include "data/batch.hpp"
#include "torch/network_module.hpp"

/// Observation of the operators that libtorch runs.
namespace syncopate::torch_backend {

/// Calls a function for each operator that libtorch runs in this thread during the observer's life:
/// the operators of a forward pass, and, on a CPU, of a backward pass. A call costs about a quarter
/// of a microsecond.
///
/// Thread: the constructor's thread, which also runs the destructor. The latest observer ends
///         first.
class OperatorObserver {
 public:
  /// `on_operator` outlives this.
  explicit OperatorObserver(const std::function<void()>& on_operator);
  ~OperatorObserver();
  OperatorObserver(const OperatorObserver&) = delete;
  OperatorObserver& operator=(const OperatorObserver&) = delete;

 private:
  const std::function<void()>* before_;
  at::CallbackHandle callback_;
};

/// Counts the multiply-adds of convolutions and matrix products in a forward pass over one sample.
/// Runs this pass in evaluation mode; the module is on a CPU. Observes operators, so that it works
/// for any network.
std::uint64_t multiply_adds(const Network& network, const SampleShape& input);

}  // namespace syncopate::torch_backend
