#include "torch/machine.hpp"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <torch/version.h>

#include <algorithm>
#include <limits>

#include "torch/device.hpp"
#include "transport/steady_time.hpp"

namespace syncopate::torch_backend {

std::string libtorch_version() {
  return TORCH_VERSION;
}

std::vector<std::string> devices_at_hand() {
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
    const TimePoint begun = steady_now();
    at::mm(matrix, matrix);
    best = std::min(best, to_seconds(steady_now() - begun));
  }
  return 2.0 * side * side * side / best;
}

}  // namespace syncopate::torch_backend
