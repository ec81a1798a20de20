#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "base/file.hpp"
#include "cli/bench/bench_command.hpp"
#include "cli/compute/compute.hpp"
#include "cli/doctor/host.hpp"
#include "cli/view/table.hpp"
#include "torch/factory.hpp"

namespace syncopate::cli {
namespace {

constexpr std::uint32_t samples = 64;
constexpr Effort effort{.seconds = 0.3};

/// Empty where libtorch has no OpenBLAS.
std::string blas_core() {
  using CoreName = char* (*)();
  const auto core = reinterpret_cast<CoreName>(::dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  return core == nullptr ? "" : core();
}

Finding blas() {
  Finding finding = judge_blas(read_file("/proc/cpuinfo"), blas_core());
  finding.text += fmt::format(", {:.0f} GFLOP/s a core", torch_backend::matrix_speed() / 1e9);
  return finding;
}

/// The driver's own words, up to the end of the line; empty where there is none.
std::string gpu_driver() {
  const std::filesystem::path version("/proc/driver/nvidia/version");
  if (!std::filesystem::exists(version)) {
    return {};
  }
  const std::string text = read_file(version);
  return text.substr(0, text.find('\n'));
}

Finding judge_gpus(const std::string& driver, std::size_t devices) {
  const std::string torch = "libtorch " + torch_backend::libtorch_version();
  if (devices > 0) {
    return {.subject = "GPUs", .text = fmt::format("{} through {}; {}", devices, torch, driver)};
  }
  if (driver.empty()) {
    return {.subject = "GPUs", .text = fmt::format("none, and no driver; {}", torch)};
  }
  return {.subject = "GPUs",
          .ok = false,
          .text = fmt::format("there is a driver ({}), but {} sees no device", driver, torch),
          .advice =
              "build with a libtorch that has CUDA (CMAKE_PREFIX_PATH), and look at "
              "CUDA_VISIBLE_DEVICES and nvidia-smi"};
}

Finding speed_of(const std::string& device) {
  Finding finding{.subject = "training", .text = ""};
  try {
    const double speed = training_speed(
        {.network = "lenet5", .device = device, .samples = samples, .effort = effort});
    finding.text = fmt::format("{}: {} samples/s (lenet5, mini-batches of {})", device,
                               grouped(static_cast<std::uint64_t>(speed)), samples);
  } catch (const std::exception& error) {
    finding.ok = false;
    finding.text = fmt::format("{} does not train: {}", device, error.what());
    finding.advice = "look at the driver and the device's memory (nvidia-smi)";
  }
  return finding;
}

}  // namespace

Findings examine_devices() {
  const std::vector<std::string> devices = torch_backend::available_devices();
  Findings findings{blas(), judge_gpus(gpu_driver(), devices.size() - 1)};
  for (const std::string& device : devices) {
    findings.push_back(speed_of(device));
  }
  return findings;
}

}  // namespace syncopate::cli
