#pragma once

#include <torch/types.h>

#include "spec/networks.hpp"

namespace syncopate::torch_backend {

/// Runs the operators of this thread in a precision (torch.autocast). float32 changes nothing.
///
/// A parameter is converted once in a pass, and again in the next one, since the optimizer changes
/// it in between. Gradients arrive in float32, whatever the precision.
class Autocast {
 public:
  Autocast(Precision precision, torch::Device device);
  ~Autocast() { end(); }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  /// A network's outputs in float32, in which a loss is computed.
  torch::Tensor outputs_of(const torch::Tensor& outputs) const;

  /// Ends the precision before the end of this object, for the backward pass.
  void end();

 private:
  bool active_;
  torch::Device device_;
};

}  // namespace syncopate::torch_backend
