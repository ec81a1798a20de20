#include "torch/device.hpp"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <fmt/core.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/errors.hpp"
#include "config/text.hpp"
#include "torch/factory.hpp"
#include "transport/steady_time.hpp"

namespace syncopate::torch_backend {
namespace {

/// 3 of "cuda:3".
std::optional<std::uint32_t> cuda_index(const std::string& name) {
  constexpr std::string_view prefix = "cuda:";
  if (!name.starts_with(prefix)) return std::nullopt;
  return number_in<std::uint32_t>(std::string_view(name).substr(prefix.size()));
}

torch::Device cuda_device(std::uint32_t index) {
  return {torch::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

std::uint32_t some_cuda_devices(const std::string& wanted) {
  const auto count = static_cast<std::uint32_t>(torch::cuda::device_count());
  if (count > 0) return count;
  throw ConfigError(
      fmt::format("device {}: libtorch {} sees no CUDA device on this machine; use device cpu, or "
                  "build with a libtorch that has CUDA",
                  wanted, TORCH_VERSION));
}

}  // namespace

torch::Device device_for(const std::string& wanted, std::uint32_t local_index) {
  const std::string name = wanted.substr(0, wanted.find(' '));
  if (name == "cpu") return torch::kCPU;
  if (name == "auto" && !torch::cuda::is_available()) return torch::kCPU;
  if (name == "auto" || name == "cuda") {
    return cuda_device(local_index % some_cuda_devices(wanted));
  }
  const std::optional<std::uint32_t> index = cuda_index(name);
  if (!index) {
    throw ConfigError(
        fmt::format("unknown device \"{}\": expected auto, cpu, cuda or cuda:N", wanted));
  }
  const std::uint32_t count = some_cuda_devices(wanted);
  if (*index < count) return cuda_device(*index);
  throw ConfigError(fmt::format("device {}: this machine has cuda:0 to cuda:{}", name, count - 1));
}

std::string device_title(torch::Device device) {
  if (!device.is_cuda()) return device.str();
  return fmt::format("{} ({})", device.str(), cuda_device_name(device.index()));
}

std::string libtorch_version() {
  return TORCH_VERSION;
}

std::string mkl_version() {
  return at::hasMKL() ? at::get_mkl_version() : "";
}

std::vector<std::string> available_devices() {
  std::vector<std::string> devices{"cpu"};
  const auto count = static_cast<c10::DeviceIndex>(at::hasCUDA() ? at::getNumGPUs() : 0);
  for (c10::DeviceIndex index = 0; index < count; ++index) {
    devices.push_back(device_title(torch::Device(torch::kCUDA, index)));
  }
  return devices;
}

double matrix_speed() {
  constexpr std::int64_t side = 512;
  constexpr int trials = 8;
  at::set_num_threads(1);
  const at::Tensor matrix = at::ones({side, side});
  double best = std::numeric_limits<double>::max();
  for (int trial = 0; trial < trials; ++trial) {
    const TimePoint started = steady_now();
    at::mm(matrix, matrix);
    best = std::min(best, to_seconds(steady_now() - started));
  }
  return 2.0 * side * side * side / best;
}

}  // namespace syncopate::torch_backend
