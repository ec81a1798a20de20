#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "torch/flat.hpp"

namespace syncopate::torch_backend {

/// Writes the gradients of a backward pass over those of the pass before, and notifies a sink of
/// each as soon as libtorch has completed it.
///
/// Autograd adds to an existing gradient. Writing it instead saves a pass over memory that first
/// zeroes the whole vector, and another that reads it.
///
/// Autograd has one node for each parameter, which accumulates the parameter's gradient. The node
/// runs once in a pass, after every use of the parameter has contributed. The node of an unused
/// parameter does not run; at the end of the pass its gradient becomes zero, and the sink learns of
/// it. The graph may be different in every pass.
///
/// Thread: the thread of the pass, which on a CPU is the caller of `backward`.
class GradientHooks {
 public:
  /// `params` outlive this. Their gradients lie at the same offsets in a flat vector.
  explicit GradientHooks(const FlatTensors& params);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

  /// Calls `completed` for each complete gradient from now on. An empty function ends the calls.
  void on_complete(std::function<void()> completed) { completed_ = std::move(completed); }

  /// By tensor: true if the last pass has computed its gradient.
  const std::vector<bool>& written() const { return written_; }

  /// Runs a backward pass, after which the gradients are its own. Notifies `sink` once of each;
  /// null: no sink.
  /// Errors: those of the pass; ConfigError if a gradient changes after it was complete, as it does
  ///         in a network that runs backward passes of its own.
  template <class Pass>
  auto run(GradientSink* sink, const Pass& pass) {
    const ActiveSink active(*this, sink);
    auto result = pass();
    zero_rest();
    report_rest();
    return result;
  }

 private:
  class WriteHook;
  class CompletionHook;

  /// Sets the sink for one pass, also for a pass that throws.
  class ActiveSink {
   public:
    ActiveSink(GradientHooks& hooks, GradientSink* sink);
    ~ActiveSink() { hooks_.sink_ = nullptr; }
    ActiveSink(const ActiveSink&) = delete;
    ActiveSink& operator=(const ActiveSink&) = delete;

   private:
    GradientHooks& hooks_;
  };

  /// libtorch 1 has a shared_ptr, libtorch 2 a pointer of its own.
  using NodeOwner =
      decltype(torch::autograd::impl::grad_accumulator(std::declval<const torch::Tensor&>()));

  struct Watched {
    /// Owned here, because a parameter refers to it only weakly.
    NodeOwner node;
    std::uintptr_t completion;
    const torch::autograd::FunctionPreHook* writing;
  };

  bool write(std::size_t tensor, const torch::Tensor& gradient);
  void complete(std::size_t tensor);
  void zero_rest();
  void report_rest();
  void report(std::size_t tensor);

  const FlatTensors& params_;
  std::vector<Watched> watched_;  ///< by tensor
  std::vector<bool> written_;     ///< by tensor, in the current pass
  std::vector<bool> reported_;    ///< by tensor, in the current pass
  GradientSink* sink_ = nullptr;
  std::function<void()> completed_;
};

}  // namespace syncopate::torch_backend
