#include "torch/gradient_teller.hpp"

#include <fmt/core.h>
#include <torch/csrc/autograd/variable.h>

#include "base/errors.hpp"

namespace syncopate::torch_backend {

class GradientTeller::Hook final : public torch::autograd::FunctionPostHook {
 public:
  Hook(GradientTeller& teller, std::size_t tensor) : teller_(teller), tensor_(tensor) {}

  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    teller_.complete(tensor_);
    return outputs;
  }

 private:
  GradientTeller& teller_;
  std::size_t tensor_;
};

GradientTeller::GradientTeller(const FlatTensors& params)
    : params_(params), told_(params.tensors().size(), false) {
  for (std::size_t i = 0; i < params.tensors().size(); ++i) {
    auto node = torch::autograd::impl::grad_accumulator(params.tensors()[i].tensor);
    const std::uintptr_t hook = node->add_post_hook(std::make_unique<Hook>(*this, i));
    watched_.push_back({std::move(node), hook});
  }
}

/// The graph of a pass may live longer than this, with those who hold its outputs.
GradientTeller::~GradientTeller() {
  for (const Watched& watched : watched_) watched.node->del_post_hook(watched.hook);
}

GradientTeller::Telling::Telling(GradientTeller& teller, GradientSink* sink) : teller_(teller) {
  teller.told_.assign(teller.told_.size(), false);
  teller.sink_ = sink;
}

void GradientTeller::complete(std::size_t tensor) {
  if (completed_) completed_();
  if (sink_ == nullptr) return;
  if (told_[tensor]) {
    throw ConfigError(fmt::format(
        "the gradient of {} changed after it was complete: a network that runs backward "
        "passes of its own needs --overlap off",
        params_.layout()[tensor].name));
  }
  tell(tensor);
}

void GradientTeller::tell_rest() {
  for (std::size_t i = told_.size(); sink_ != nullptr && i > 0; --i) {
    if (!told_[i - 1]) tell(i - 1);
  }
}

void GradientTeller::tell(std::size_t tensor) {
  told_[tensor] = true;
  const std::size_t begin = params_.layout()[tensor].offset;
  sink_->ready(begin, begin + static_cast<std::size_t>(params_.tensors()[tensor].tensor.numel()));
}

}  // namespace syncopate::torch_backend
