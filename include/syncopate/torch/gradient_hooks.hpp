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
/// Autograd has one node for each trained tensor, which accumulates its gradient: once per pass,
/// after all uses of the tensor. The node of an unused tensor does not run.
///
/// Thread: the function is called on the thread of the pass; on a CPU that is the caller of
///         `backward`.
class GradientHooks {
 public:
  /// Receives the index of a tensor. The backward pass throws its errors.
  using Completed = std::function<void(std::size_t tensor)>;

  /// The function lives as long as this object and any running pass.
  GradientHooks(const std::vector<torch::Tensor>& tensors, Completed completed)
      : completed_(std::make_shared<const Completed>(std::move(completed))) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      auto node = torch::autograd::impl::grad_accumulator(tensors[i]);
      const std::uintptr_t hook = node->add_post_hook(std::make_unique<Hook>(completed_, i));
      watched_.push_back({std::move(node), hook});
    }
  }
  /// Removes the hooks: the graph of a pass lives as long as its outputs, which may outlive this
  /// object.
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

  /// A shared_ptr in libtorch 1, a pointer type of libtorch's own in libtorch 2.
  using NodeOwner =
      decltype(torch::autograd::impl::grad_accumulator(std::declval<const torch::Tensor&>()));

  struct Watched {
    NodeOwner node;  ///< a tensor holds it only weakly
    std::uintptr_t hook;
  };

  std::shared_ptr<const Completed> completed_;
  std::vector<Watched> watched_;  ///< by tensor
};

}  // namespace detail
}  // namespace v0
}  // namespace syncopate
