#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/device_profile.hpp"

namespace syncopate {

/// The cost of a link in the simulator: a message takes `latency` plus its bytes / `bandwidth`.
struct LinkProfile {
  double bandwidth = 1.25e9;  ///< bytes per second
  Duration latency = std::chrono::microseconds(50);
};

/// An emulated cluster: one device per worker, in the order of ranks. See
/// `docs/guides/clusters.md`.
struct ClusterFile {
  std::string name;
  std::vector<DeviceProfile> devices;
  std::optional<PauseProfile> pauses;
  LinkProfile link;  ///< of the simulator; a real run uses the real network
};

/// Reads a cluster file (TOML).
///
///     name = "mixed"                 # default: the file's name
///     batch_samples = 64             # of seconds_per_batch, also of one device; default 64
///     [[devices]]
///     name = "gpu-new"               # default: "device-" and the first rank
///     count = 2                      # default 1
///     seconds_per_batch = 0.02       # or samples_per_second = 3200
///     seconds_per_step = 0.002       # of these, in a step of any size; default 0
///     jitter = 0.05                  # default 0
///     batch_size = 64                # optional: this device's own mini-batch
///     [pauses]
///     every = 60.0                   # seconds
///     lasting = 30.0                 # shorter than every
///     [link]
///     bandwidth = 1.25e9             # bytes per second
///     latency = 50e-6                # seconds
///
/// Errors: ConfigError, one line with file, line and column: not TOML, an unknown key (the nearest
/// is suggested), a wrong type, a missing or contradictory time, a value out of range, no device.
/// DataError: the file cannot be read.
ClusterFile read_cluster_file(const std::filesystem::path& path);
/// The same for a text that will be written to `path`. Errors: ConfigError.
ClusterFile parse_cluster_file(std::string_view text, const std::filesystem::path& path);

}  // namespace syncopate
