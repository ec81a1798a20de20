// For a libtorch with CUDA.
#include <ATen/cuda/CUDAContext.h>

#include "torch/device.hpp"

namespace syncopate::torch_backend {

std::string cuda_device_name(c10::DeviceIndex index) {
  return at::cuda::getDeviceProperties(index)->name;
}

}  // namespace syncopate::torch_backend
