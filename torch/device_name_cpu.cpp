// For a libtorch without CUDA: it has no device, so no caller asks for a name.
#include "base/errors.hpp"
#include "torch/device.hpp"

namespace syncopate::torch_backend {

std::string cuda_device_name(c10::DeviceIndex index) {
  throw InternalError("asked for the name of CUDA device " + std::to_string(index) +
                      " without CUDA");
}

}  // namespace syncopate::torch_backend
