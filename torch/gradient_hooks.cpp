#include "torch/gradient_hooks.hpp"

#include <fmt/core.h>
#include <torch/csrc/autograd/variable.h>

#include "base/errors.hpp"

namespace syncopate::torch_backend {

class GradientHooks::Hook final : public torch::autograd::FunctionPostHook {
 public:
  Hook(GradientHooks& hooks, std::size_t tensor) : hooks_(hooks), tensor_(tensor) {}

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
    : params_(params), reported_(params.tensors().size(), false) {
  for (std::size_t i = 0; i < params.tensors().size(); ++i) {
    auto node = torch::autograd::impl::grad_accumulator(params.tensors()[i].tensor);
    const std::uintptr_t hook = node->add_post_hook(std::make_unique<Hook>(*this, i));
    watched_.push_back({std::move(node), hook});
  }
}

/// The graph of a pass lives as long as its outputs, which may outlive this object.
GradientHooks::~GradientHooks() {
  for (const Watched& watched : watched_) watched.node->del_post_hook(watched.hook);
}

GradientHooks::ActiveSink::ActiveSink(GradientHooks& hooks, GradientSink* sink) : hooks_(hooks) {
  hooks.reported_.assign(hooks.reported_.size(), false);
  hooks.sink_ = sink;
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
