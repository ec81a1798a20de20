#include "torch/gradient_hooks.hpp"

#include <fmt/core.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "base/errors.hpp"

namespace syncopate::torch_backend {

/// Runs before a node. If it has written the gradient, the node gets none, and so adds nothing.
class GradientHooks::WriteHook final : public torch::autograd::FunctionPreHook {
 public:
  WriteHook(GradientHooks& hooks, std::size_t tensor) : hooks_(hooks), tensor_(tensor) {}

  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& gradients) override {
    return hooks_.write(tensor_, gradients.front()) ? torch::autograd::variable_list(1) : gradients;
  }

 private:
  GradientHooks& hooks_;
  std::size_t tensor_;
};

class GradientHooks::CompletionHook final : public torch::autograd::FunctionPostHook {
 public:
  CompletionHook(GradientHooks& hooks, std::size_t tensor) : hooks_(hooks), tensor_(tensor) {}

  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    hooks_.complete(tensor_);
    return outputs;
  }

 private:
  GradientHooks& hooks_;
  std::size_t tensor_;
};

GradientHooks::GradientHooks(const FlatTensors& params)
    : params_(params),
      written_(params.tensors().size(), false),
      reported_(params.tensors().size(), false) {
  for (std::size_t i = 0; i < params.tensors().size(); ++i) {
    auto node = torch::autograd::impl::grad_accumulator(params.tensors()[i].tensor);
    auto writing = std::make_unique<WriteHook>(*this, i);
    const auto* const hook = writing.get();
    node->add_pre_hook(std::move(writing));
    const std::uintptr_t completion =
        node->add_post_hook(std::make_unique<CompletionHook>(*this, i));
    watched_.push_back({std::move(node), completion, hook});
  }
}

/// Removes the hooks: the graph of a pass lives as long as its outputs, which may outlive this
/// object.
GradientHooks::~GradientHooks() {
  for (const Watched& watched : watched_) {
    watched.node->del_post_hook(watched.completion);
    std::erase_if(watched.node->pre_hooks(),
                  [&](const auto& hook) { return hook.get() == watched.writing; });
  }
}

GradientHooks::ActiveSink::ActiveSink(GradientHooks& hooks, GradientSink* sink) : hooks_(hooks) {
  hooks.written_.assign(hooks.written_.size(), false);
  hooks.reported_.assign(hooks.reported_.size(), false);
  hooks.sink_ = sink;
}

/// Writes a gradient over that of the previous pass. Returns false if libtorch has to add it: to an
/// earlier one of this pass, if the network runs backward passes of its own, or because the
/// gradient is sparse, or because hooks of the parameter change it.
bool GradientHooks::write(std::size_t tensor, const torch::Tensor& gradient) {
  const torch::Tensor& parameter = params_.tensors()[tensor].tensor;
  torch::Tensor& place = parameter.mutable_grad();
  if (written_[tensor] || !gradient.defined() || !place.defined()) return false;
  written_[tensor] = true;
  const torch::NoGradGuard no_grad;
  if (gradient.is_sparse() || !torch::autograd::impl::hooks(parameter).empty()) {
    place.zero_();
    return false;
  }
  place.copy_(gradient);
  return true;
}

void GradientHooks::complete(std::size_t tensor) {
  if (completed_) completed_();
  if (sink_ == nullptr) return;
  if (reported_[tensor]) {
    throw ConfigError(fmt::format(
        "the gradient of {} changed after it was complete: a network that runs backward "
        "passes of its own needs --overlap off",
        params_.tensors()[tensor].name));
  }
  report(tensor);
}

void GradientHooks::zero_rest() {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < written_.size(); ++i) {
    if (!written_[i]) params_.tensors()[i].tensor.mutable_grad().zero_();
  }
}

void GradientHooks::report_rest() {
  for (std::size_t i = reported_.size(); sink_ != nullptr && i > 0; --i) {
    if (!reported_[i - 1]) report(i - 1);
  }
}

void GradientHooks::report(std::size_t tensor) {
  reported_[tensor] = true;
  const std::size_t begin = params_.offset(tensor);
  sink_->ready(begin, begin + static_cast<std::size_t>(params_.tensors()[tensor].tensor.numel()));
}

}  // namespace syncopate::torch_backend
