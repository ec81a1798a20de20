#include "torch/device.hpp"

#include <fmt/core.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <charconv>
#include <optional>

#include "base/errors.hpp"

namespace syncopate::torch_backend {
namespace {

/// 3 of "cuda:3".
std::optional<std::uint32_t> cuda_index(const std::string& name) {
  constexpr std::string_view prefix = "cuda:";
  if (!name.starts_with(prefix)) return std::nullopt;
  std::uint32_t index = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, index);
  if (error != std::errc() || rest != end) return std::nullopt;
  return index;
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

}  // namespace syncopate::torch_backend
