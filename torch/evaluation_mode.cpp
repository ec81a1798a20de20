#include "torch/evaluation_mode.hpp"

namespace syncopate::torch_backend {

EvaluationMode::EvaluationMode(torch::nn::Module& module) : parts_(module.modules()) {
  for (const auto& part : parts_) was_training_.push_back(part->is_training());
  module.eval();
}

EvaluationMode::~EvaluationMode() {
  // A parent sets its children, and comes before them: the last word is the part's own.
  for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i]->train(was_training_[i]);
}

}  // namespace syncopate::torch_backend
