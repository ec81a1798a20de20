#pragma once

#include <string>
#include <vector>

/// What libtorch finds on a machine.
namespace syncopate::torch_backend {

/// "1.13.1"
std::string libtorch_version();

/// What `resolve_device` understands, the processor first: "cpu", "cuda:0 (NVIDIA H100)".
std::vector<std::string> devices_at_hand();

/// Multiplications and additions of float32 a second, in products of square matrices by one thread.
double matrix_speed();

}  // namespace syncopate::torch_backend
