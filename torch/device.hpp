#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>

namespace syncopate::torch_backend {

/// The device that `wanted` means for the worker with this index on its machine; see
/// `resolve_device`. More workers than CUDA devices share them. Results of `resolve_device` are
/// valid names, too.
/// Errors: ConfigError if this machine or this build of libtorch does not have the device.
torch::Device device_for(const std::string& wanted, std::uint32_t local_index);

/// "cpu" or "cuda:0 (NVIDIA H100)".
std::string device_title(torch::Device device);

/// The maker's name of a CUDA device. Which of its two definitions is built depends on libtorch.
std::string cuda_device_name(c10::DeviceIndex index);

}  // namespace syncopate::torch_backend
