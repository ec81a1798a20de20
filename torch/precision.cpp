#include "torch/precision.hpp"

#include <ATen/autocast_mode.h>
#include <torch/version.h>

#include "base/errors.hpp"

namespace syncopate::torch_backend {
namespace {

#if TORCH_VERSION_MAJOR >= 2

bool is_enabled(torch::DeviceType device) {
  return at::autocast::is_autocast_enabled(device);
}

void enable(torch::DeviceType device) {
  at::autocast::set_autocast_dtype(device, torch::kBFloat16);
  at::autocast::set_autocast_enabled(device, true);
}

void disable(torch::DeviceType device) {
  at::autocast::set_autocast_enabled(device, false);
}

#else

bool is_enabled(torch::DeviceType device) {
  return device == torch::kCPU ? at::autocast::is_cpu_enabled() : at::autocast::is_enabled();
}

void enable(torch::DeviceType device) {
  if (device == torch::kCPU) {
    at::autocast::set_autocast_cpu_dtype(torch::kBFloat16);
    at::autocast::set_cpu_enabled(true);
  } else {
    at::autocast::set_autocast_gpu_dtype(torch::kBFloat16);
    at::autocast::set_enabled(true);
  }
}

void disable(torch::DeviceType device) {
  device == torch::kCPU ? at::autocast::set_cpu_enabled(false) : at::autocast::set_enabled(false);
}

#endif

}  // namespace

Autocast::Autocast(Precision precision, torch::Device device)
    : active_(precision == Precision::bf16), device_(device) {
  if (!active_) return;
  if (is_enabled(device.type())) {
    throw InternalError("a pass with autocast began inside another one");
  }
  at::autocast::increment_nesting();
  enable(device.type());
}

torch::Tensor Autocast::outputs_of(const torch::Tensor& outputs) const {
  return active_ ? outputs.to(torch::kFloat32) : outputs;
}

void Autocast::end() {
  if (!active_) return;
  active_ = false;
  disable(device_.type());
  // The cache holds the converted parameters.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
}

}  // namespace syncopate::torch_backend
