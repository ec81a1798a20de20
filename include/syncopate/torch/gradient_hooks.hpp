#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace syncopate {
inline namespace v0 {
namespace detail {

/// Calls a function whenever a backward pass of autograd has completed the gradient of a tensor.
///
/// Autograd has one node for each tensor that is trained, which adds to its gradient: once in a
/// pass, and after all uses of the tensor. The node of an unused tensor does not run.
///
/// Thread: the function is called on that of the pass, which on a CPU is the caller of `backward`.
class GradientHooks {
 public:
  /// Gets the index of a tensor. Its errors leave the backward pass.
  using Completed = std::function<void(std::size_t tensor)>;

  /// The function lives as long as this object, and as a pass that is under way.
  GradientHooks(const std::vector<torch::Tensor>& tensors, Completed completed)
      : completed_(std::make_shared<const Completed>(std::move(completed))) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      auto node = torch::autograd::impl::grad_accumulator(tensors[i]);
      const std::uintptr_t hook = node->add_post_hook(std::make_unique<Hook>(completed_, i));
      watched_.push_back({std::move(node), hook});
    }
  }
  /// The graph of a pass lives as long as its outputs, which may outlive this object.
  ~GradientHooks() {
    for (const Watched& watched : watched_) watched.node->del_post_hook(watched.hook);
  }
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

 private:
  class Hook final : public torch::autograd::FunctionPostHook {
   public:
    Hook(std::shared_ptr<const Completed> completed, std::size_t tensor)
        : completed_(std::move(completed)), tensor_(tensor) {}
    torch::autograd::variable_list operator()(
        const torch::autograd::variable_list& outputs,
        const torch::autograd::variable_list& /*inputs*/) override {
      (*completed_)(tensor_);
      return outputs;
    }

   private:
    std::shared_ptr<const Completed> completed_;
    std::size_t tensor_;
  };

  /// libtorch 1 has a shared_ptr, libtorch 2 a pointer of its own.
  using NodeOwner =
      decltype(torch::autograd::impl::grad_accumulator(std::declval<const torch::Tensor&>()));

  struct Watched {
    NodeOwner node;  ///< a tensor refers to it only weakly
    std::uintptr_t hook;
  };

  std::shared_ptr<const Completed> completed_;
  std::vector<Watched> watched_;  ///< by tensor
};

}  // namespace detail
}  // namespace v0
}  // namespace syncopate
