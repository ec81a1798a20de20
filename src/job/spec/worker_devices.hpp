#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "job/spec/config.hpp"

namespace syncopate {

/// `TrainConfig::device` names a device for all workers (`auto`, `cpu`, `cuda`, `cuda:N`), or lists
/// one for each by rank: "cuda:0,cpu".

/// Whether `text` is a device other than `auto`, `cpu` and `cuda`, or a list of devices.
bool is_device_list(std::string_view text);

/// Errors: ConfigError, for a list of another length than there are workers.
void check_devices(const TrainConfig& config);

/// The device of one worker. Errors: ConfigError, for a list without an entry for it.
std::string device_of_worker(const TrainConfig& config, std::uint32_t rank);

}  // namespace syncopate
