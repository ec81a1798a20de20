#include "job/spec/worker_devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "base/errors.hpp"
#include "config/text.hpp"

namespace syncopate {
namespace {

bool is_device(std::string_view name) {
  constexpr std::array<std::string_view, 3> plain{"auto", "cpu", "cuda"};
  constexpr std::string_view numbered = "cuda:";
  if (!name.starts_with(numbered)) {
    return std::find(plain.begin(), plain.end(), name) != plain.end();
  }
  const std::string_view number = name.substr(numbered.size());
  return !number.empty() && number.size() <= 3 &&
         std::all_of(number.begin(), number.end(),
                     [](unsigned char letter) { return std::isdigit(letter) != 0; });
}

}  // namespace

bool is_device_list(std::string_view text) {
  const std::vector<std::string_view> entries = entries_of(text);
  return std::all_of(entries.begin(), entries.end(), is_device);
}

void check_devices(const TrainConfig& config) {
  const std::size_t devices = entries_of(config.device).size();
  if (devices > 1 && devices != config.workers) {
    throw ConfigError(fmt::format(
        "device {} lists {} devices for {} worker{}; list one for each worker, or name one for all",
        config.device, devices, config.workers, config.workers == 1 ? "" : "s"));
  }
}

std::string device_of_worker(const TrainConfig& config, std::uint32_t rank) {
  const std::vector<std::string_view> devices = entries_of(config.device);
  if (devices.size() == 1) {
    return config.device;
  }
  if (rank >= devices.size()) {
    throw ConfigError(fmt::format("device {} lists {} devices, none of them for worker {}",
                                  config.device, devices.size(), rank));
  }
  return std::string(devices[rank]);
}

}  // namespace syncopate
